package model

import (
	"slices"
	"time"

	"ckscale/internal/store/storetest"
)

// shorter leaves out of a script what it does not need to fail, until the time
// is over. rapid has done the same before, on what the script was drawn from;
// lines are larger bites.
func shorter(s script, until time.Time, fails func(script) bool) script {
	try := func(c script) bool {
		if time.Now().After(until) || !fails(c) {
			return false
		}
		s = c
		return true
	}
	for again := true; again && time.Now().Before(until); {
		again = false
		for size := max(1, len(s.steps)/2); size > 0; size /= 2 {
			for from := len(s.steps) - size; from >= 0; from -= size {
				if from+size > len(s.steps) {
					continue
				}
				c := s
				c.steps = slices.Delete(slices.Clone(s.steps), from, from+size)
				again = try(c) || again
			}
		}
		for _, c := range s.simpler() {
			again = try(c) || again
		}
	}
	return s
}

// simpler are scripts with the same actions on less.
func (s script) simpler() (list []script) {
	onB := slices.ContainsFunc(s.steps, func(st step) bool { return st.args["CLUSTER"] == "B" })
	if len(s.clusters) == 2 && !onB {
		c := s
		c.clusters = s.clusters[:1]
		return append(list, c)
	}
	for i, old := range s.clusters {
		for _, change := range []func(*storetest.Spec){
			func(c *storetest.Spec) { c.Control = 1 }, func(c *storetest.Spec) { c.Etcd = 0 },
			func(c *storetest.Spec) { c.External = 0 }, func(c *storetest.Spec) { c.Workers = max(1, c.Workers-1) },
		} {
			c := s
			c.clusters = slices.Clone(s.clusters)
			if change(&c.clusters[i]); c.clusters[i] != old {
				list = append(list, c)
			}
		}
	}
	if s.instant {
		c := s
		c.instant = false
		list = append(list, c)
	}
	return list
}
