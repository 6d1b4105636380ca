package cks

import (
	"cmp"
	"slices"
	"testing"
)

// Every setting can be shown, and what can be changed can be checked; those that
// say how long jobs may take are numbers that can be changed (spec/cks.md §9).
func TestSettingsAreWhole(t *testing.T) {
	t.Parallel()
	env := SettingDefaults{SettingMaxSize: "10", SettingDrainTimeout: "60", SettingEndpointURL: "http://x/client/api"}
	for _, name := range TimeoutSettings {
		env[name] = "3600"
	}
	all := Settings(env)
	if !slices.IsSortedFunc(all, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Error("they are not sorted by name")
	}
	byName := map[string]Setting{}
	for _, s := range all {
		if byName[s.Name].Name != "" || s.Category == "" || s.Description == "" || s.Type == "" || s.Value == "" || s.Value != s.Default {
			t.Errorf("setting %+v", s)
		}
		byName[s.Name] = s
		plain, err := CheckSetting(s, s.Value, "")
		if s.Dynamic != (err == nil) || err == nil && plain != s.Value {
			t.Errorf("%s: its own value is %q, %v", s.Name, plain, err)
		}
		if _, err := CheckSetting(s, s.Value, "an account"); (err == nil) != s.OfAccount {
			t.Errorf("%s of an account: %v", s.Name, err)
		}
	}
	for command, name := range TimeoutSettings {
		if s := byName[name]; !s.Dynamic || s.Type != SettingNumber || s.OfAccount {
			t.Errorf("%s has the time of %+v", command, s)
		}
	}
	for name := range env {
		if byName[name].Name == "" {
			t.Errorf("no setting %s", name)
		}
	}
}

// The address of the API is a URL, and none with a password: everybody who may
// read events and settings would read it.
func TestEndpointURLIsChecked(t *testing.T) {
	t.Parallel()
	all := Settings(nil)
	endpoint := all[slices.IndexFunc(all, func(s Setting) bool { return s.Name == SettingEndpointURL })]
	for value, right := range map[string]bool{
		"http://api.example:8080/client/api": true, " https://[2001:db8::1]/ ": true,
		"ftp://api.example": false, "http://": false, "api.example": false, "http://ann:secret@api.example/": false, "http://ann@api.example/": false,
	} {
		if _, err := CheckSetting(endpoint, value, ""); (err == nil) != right {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// A page out of a list in memory is cut as the database cuts it.
func TestPageOfAList(t *testing.T) {
	t.Parallel()
	list := []int{1, 2, 3, 4, 5}
	for page, want := range map[Page][]int{
		{}: list, {Size: -1}: list, {Number: 1, Size: 2}: {1, 2}, {Number: 3, Size: 2}: {5}, {Number: 4, Size: 2}: nil,
		{Number: 1 << 62, Size: 500}: nil, {Number: 1, Size: 5}: list, {Number: 2, Size: 5}: nil,
	} {
		if got := PageOf(page, list); !slices.Equal(got, want) {
			t.Errorf("%+v: %v", page, got)
		}
	}
	if got := PageOf(Page{}, []int(nil)); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
