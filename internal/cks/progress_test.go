package cks

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What is shown of a job follows from where it stands: the last step that it
// has done, whether it is given up, and whether it has ended.
//
// Keeps: ours/progress, ours/progress-message.
func TestProgress(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 7, 12, 0, 0, 0, time.UTC)
	done, failed := StepTime{Started: at, Ended: at}, StepTime{Started: at, Ended: at, Failed: true}
	first, second := map[string]StepTime{"a": done}, map[string]StepTime{"a": done, "b": done}
	broken := map[string]StepTime{"a": done, "b": failed}
	for name, c := range map[string]struct {
		job  Job
		want string // the steps' states by their first letters, and the message
	}{
		"not taken up":              {Job{}, "ppp waiting for a server to take it up"},
		"in its first step":         {Job{Attempt: 1, StepSince: at}, "cpp step 1 of 3: a"},
		"in its second":             {Job{Attempt: 1, StepSince: at, Step: "a", StepTimes: first}, "dcp step 2 of 3: b"},
		"it says something":         {Job{Attempt: 1, StepSince: at, Step: "a", StepTimes: first, Message: "waits"}, "dcp waits"},
		"back in a loop":            {Job{Attempt: 1, StepSince: at, Step: "a", StepTimes: second}, "dcp step 2 of 3: b"},
		"by an older server":        {Job{Attempt: 1, Step: "b"}, "ddp "},
		"at its end":                {Job{Attempt: 1, StepSince: at, Step: "c", StepTimes: second}, "ddd "},
		"succeeded":                 {Job{Status: JobSucceeded, Step: "c", StepTimes: second, Message: "waits"}, "ddd "},
		"being undone":              {Job{Attempt: 1, StepSince: at, Failure: "x", StepTimes: broken}, "dfscp step 4 of 5: u"},
		"nearly undone":             {Job{Attempt: 1, StepSince: at, Failure: "x", StepTimes: broken, Step: "u"}, "dfsdc step 5 of 5: v"},
		"failed and undone":         {Job{Status: JobFailed, Failure: "x", StepTimes: broken, Step: "v"}, "dfsdd "},
		"failed, undo failed":       {Job{Status: JobFailed, Failure: "x", StepTimes: broken, Step: "u"}, "dfsdf "},
		"failed, nothing to undo":   {Job{Status: JobFailed, Failure: "x", Unchanged: true, StepTimes: broken}, "dfs "},
		"failed in a loop":          {Job{Status: JobFailed, Failure: "x", Unchanged: true, StepTimes: map[string]StepTime{"a": done, "b": failed, "c": done}}, "dfs "},
		"given up by an older one":  {Job{Status: JobFailed, Failure: "x", Unchanged: true, StepTimes: first}, "dss "},
		"failed where it would end": {Job{Status: JobFailed, Failure: "x", Unchanged: true, StepTimes: map[string]StepTime{"a": done, "b": done, "c": done, "record-end": failed}}, "ddd "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, message := c.job.Progress([]string{"a", "b", "c"}, []string{"u", "v"})
			got := ""
			for _, s := range list {
				got += string(s.State[0])
				known := s.State == StepFailed || s.State == StepDone
				if !known && !s.Ended.IsZero() || (s.State == StepPending || s.State == StepSkipped) && !s.Started.IsZero() {
					t.Errorf("times of a step that is %s: %+v", s.State, s)
				}
			}
			if got = strings.Join([]string{got, message}, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if list, message := (Job{Attempt: 1, Message: "x"}).Progress(nil, nil); list != nil || message != "" {
		t.Errorf("a job without a plan shows %v", fmt.Sprint(list, message))
	}
}
