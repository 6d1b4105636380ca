package conformance

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "write docs/conformance.md anew")

const document = "../../docs/conformance.md"

// Every clause has a test, every marker a clause, and the document is that of
// today.
func TestEveryClauseHasATest(t *testing.T) {
	t.Parallel()
	groups, err := Groups()
	if err != nil {
		t.Fatal(err)
	}
	tests, err := Tests(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Markdown(groups, tests)
	if err != nil {
		t.Error(err)
	}
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not of today: make generate", document)
	}
}

// A list that cannot be read, or has a clause twice, is not passed over.
func TestListsAreChecked(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no title": "A01: one\n", "twice": "# T\nA01: one\nA01: two\n", "no text": "# T\nA01:\n", "no such state": "# T\nA01: [soon] one\n",
	} {
		if groups, err := readGroups(fstest.MapFS{"clauses/x.txt": {Data: []byte(text)}}); err == nil {
			t.Errorf("%s: %v", name, groups)
		}
	}
	groups, err := readGroups(fstest.MapFS{"clauses/x.txt": {Data: []byte("# T\nA01: [ours] one: two\n\n# U\n§1/b: x\n")}})
	if err != nil || len(groups) != 2 || groups[0].Clauses[0] != (Clause{"A01", "one: two", "ours"}) || groups[1].Clauses[0].State != "kept" {
		t.Errorf("%v, %v", groups, err)
	}
}

const marked = `package p

// TestA keeps two.
//
// Keeps: A01, §3.1/9f.
func TestA(t *testing.T) {
	// Keeps: A02.
	t.Log()
}

// Keeps: D1.
` + "func FuzzB(f *testing.F) {}\n"

// Markers count where they stand at a test, in its comment or inside it; one
// that keeps nothing is an error.
func TestMarkersBelongToTests(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"a/b_test.go": {Data: []byte(marked)}, "a/b.go": {Data: []byte("package p\n\n// Keeps: A09.\n")}}
	tests, err := Tests(files)
	if err != nil || len(tests) != 2 {
		t.Fatalf("%v, %v", tests, err)
	}
	if a := tests[0]; a.Name != "TestA" || a.File != "a/b_test.go" || !slices.Equal(a.Refs, []string{"A01", "§3.1/9f", "A02"}) {
		t.Errorf("%v", a)
	}
	if b := tests[1]; b.Name != "FuzzB" || !slices.Equal(b.Refs, []string{"D1"}) {
		t.Errorf("%v", b)
	}
	for _, astray := range []string{"var x int\n", "func help() {}\n", "func (s suite) TestC() {}\n"} {
		files["a/c_test.go"] = &fstest.MapFile{Data: []byte("package p\n\n// Keeps: A01.\n" + astray)}
		if _, err := Tests(files); err == nil || !strings.Contains(err.Error(), "at no test") {
			t.Errorf("%s: %v", astray, err)
		}
	}
}

// What is missing on either side is named.
func TestMissingTestsAndClausesAreNamed(t *testing.T) {
	t.Parallel()
	groups := []Group{{"T", []Clause{{"A01", "one | two", "kept"}, {"A02", "three", "open"}}}}
	text, err := Markdown(groups, []Test{{"TestA", "a/a_test.go", []string{"A01", "A01"}}, {"TestB", "a/b_test.go", []string{"A77"}}})
	for _, want := range []string{"no test keeps A02: three", "TestB of A77"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	for _, want := range []string{"2 clauses: 1 kept, 0 ours, 1 open.", "| A01 | one \\| two | kept | [TestA](../a/a_test.go) |\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
