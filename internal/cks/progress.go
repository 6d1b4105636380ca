package cks

import (
	"fmt"
	"slices"
	"time"
)

// StepTime is when a step of a job began and ended, by the database's clock.
type StepTime struct {
	Started time.Time `json:"started"` // zero = not known
	Ended   time.Time `json:"ended"`
	Failed  bool      `json:"failed,omitempty"` // the job was given up in it
}

// StepState says how far a job has come in one of its steps.
type StepState string

// The states of steps. A step of a loop that is to be done once more is pending
// again.
const (
	StepDone    StepState = "done"
	StepCurrent StepState = "current" // under way, or waiting
	StepPending StepState = "pending"
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped" // the job has come, or will come, to its end without it
)

// JobStep is one step of a job as it is shown.
type JobStep struct {
	Name           string
	State          StepState
	Started, Ended time.Time // zero = not yet, or not known
}

// Progress returns how far j has come in steps, those of its plan, and in undo,
// those that follow them when it is given up after something was changed; and a
// line about what is going on, "" once it has ended.
func (j Job) Progress(steps, undo []string) (list []JobStep, message string) {
	if len(steps) == 0 {
		return nil, ""
	}
	if j.Failure == "" {
		list = j.stepStates(steps)
	} else {
		list = j.givenUp(steps)
		if !j.Unchanged {
			list = append(list, j.stepStates(undo)...)
		}
	}
	if j.Status == JobPending {
		message = j.message(list)
	}
	return list, message
}

// stepStates are the states of the steps that j is going through.
func (j Job) stepStates(names []string) []JobStep {
	at := slices.Index(names, j.Step) + 1 // 0 before the first
	list := make([]JobStep, len(names))
	for i, name := range names {
		s := JobStep{Name: name, State: StepPending}
		switch {
		case i < at || j.Status == JobSucceeded:
			t := j.StepTimes[name]
			s.State, s.Started, s.Ended = StepDone, t.Started, t.Ended
		case j.Status == JobFailed && i == at:
			s.State = StepFailed
		case j.Status == JobFailed:
			s.State = StepSkipped
		case i == at && !j.StepSince.IsZero():
			s.State, s.Started = StepCurrent, j.StepSince
		}
		list[i] = s
	}
	return list
}

// givenUp are the states of the steps of a job that went no further than the
// one that failed.
func (j Job) givenUp(names []string) []JobStep {
	failed := slices.IndexFunc(names, func(name string) bool { return j.StepTimes[name].Failed })
	list := make([]JobStep, len(names))
	for i, name := range names {
		t := j.StepTimes[name]
		list[i] = JobStep{Name: name, State: StepDone, Started: t.Started, Ended: t.Ended}
		switch {
		case t.Failed:
			list[i].State = StepFailed
		case failed >= 0 && i > failed, t.Ended.IsZero():
			list[i] = JobStep{Name: name, State: StepSkipped}
		}
	}
	return list
}

// message is what j says of itself, or else where it is.
func (j Job) message(list []JobStep) string {
	if j.Message != "" {
		return j.Message
	}
	for i, s := range list {
		if s.State == StepCurrent {
			return fmt.Sprintf("step %d of %d: %s", i+1, len(list), s.Name)
		}
	}
	if j.Attempt == 0 {
		return "waiting for a server to take it up"
	}
	return ""
}
