package cks

import "strings"

// autoscalingChecks are check 9; all but the last apply to turning it on.
var autoscalingChecks = []check[scaling]{
	whenTurnedOn("autoscaling: alone", "9a", func(s scaling) error {
		if s.req.Size != nil || s.req.NodeIDs != nil {
			return Errorf(Invalid, "Autoscaling can not be passed along with nodeids or clustersize")
		}
		return nil
	}),
	whenTurnedOn("autoscaling: version", "9b", func(s scaling) error {
		if !versionAtLeast(s.View.Version.Version, minVersionAutoscaling) {
			return Errorf(Invalid, "Autoscaling requires Kubernetes Version %s or above", minVersionAutoscaling)
		}
		return nil
	}),
	whenTurnedOn("autoscaling: endpoint", "9c", func(s scaling) error {
		if s.EndpointURL == "" || strings.Contains(s.EndpointURL, "localhost") {
			return Errorf(Invalid, "Global setting endpoint.url has to be set to the Management Server's API end point")
		}
		return nil
	}),
	whenTurnedOn("autoscaling: bounds given", "9d", func(s scaling) error {
		if s.req.MinSize == nil || s.req.MaxSize == nil {
			return Errorf(Invalid, "Autoscaling requires minsize and maxsize to be passed")
		}
		return nil
	}),
	whenTurnedOn("autoscaling: minsize", "9e", func(s scaling) error {
		if *s.req.MinSize < 1 {
			return Errorf(Invalid, "Minsize must be at least than 1")
		}
		return nil
	}),
	whenTurnedOn("autoscaling: maxsize above minsize", "9f", func(s scaling) error {
		if *s.req.MaxSize <= *s.req.MinSize {
			return Errorf(Invalid, "Maxsize must be greater than minsize")
		}
		return nil
	}),
	whenTurnedOn("autoscaling: maximum", "9g", func(s scaling) error {
		if s.overMax(*s.req.MaxSize) {
			return tooLarge(s.MaxSize)
		}
		return nil
	}),
	{"autoscaling: state", "cks.md §4, ours", func(s scaling) error {
		if _, err := s.c.State.On(AutoscaleRequested); err != nil && s.changesAutoscaling() {
			return s.inState()
		}
		return nil
	}},
}

// minVersionAutoscaling is the first Kubernetes version that can autoscale.
const minVersionAutoscaling = "1.15.0"

func whenTurnedOn(name, number string, test func(scaling) error) check[scaling] {
	return check[scaling]{name, "cks.md §3.1 " + number, func(s scaling) error {
		if s.req.Autoscaling == nil || !*s.req.Autoscaling {
			return nil
		}
		return test(s)
	}}
}

// changesAutoscaling reports whether the request sets autoscaling otherwise
// than it is (spec/cks.md §5.6). Bounds count only with autoscaling on: without
// it they are ignored (§3.3), and Terraform sends zeros.
func (s scaling) changesAutoscaling() bool {
	on, is := s.req.Autoscaling, s.c.Autoscaling
	switch {
	case on == nil:
		return false
	case *on != is.Enabled:
		return true
	}
	return *on && (differs(s.req.MinSize, is.Min) || differs(s.req.MaxSize, is.Max))
}

func differs(given *int64, is int) bool { return given != nil && *given != int64(is) }
