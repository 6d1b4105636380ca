// Package conformance keeps docs/conformance.md: which test keeps which clause
// of what ckscale promises. The clauses are the lists under clauses/, a line
// each; the tests say which they keep in a line of their doc comment, or of a
// comment inside them:
//
//	// Keeps: A23, §3.1/9f, seed/down-first.
package conformance

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed clauses/*.txt
var lists embed.FS

// A Clause is one thing that is promised.
type Clause struct {
	Ref   string // such as "A23", "D5", "§3.1/9f", "seed/down-first"
	Text  string // one line
	State string // one of States
}

// A Group is the clauses of one source, under a title.
type Group struct {
	Title   string
	Clauses []Clause
}

// States say how a clause is kept: as CloudStack has it; in our way, which the
// clause's line gives the reason for; or not yet, where the test shows what is
// answered meanwhile.
var States = []string{"kept", "ours", "open"}

// A Test keeps clauses.
type Test struct {
	Name string
	File string // below the module's root
	Refs []string
}

// A clause's line: its reference, a colon, a state in brackets unless it is
// the first of States, and what it says.
var clauseLine = regexp.MustCompile(`^(\S+): (?:\[(\w+)\] )?(\S.*)$`)

// Groups reads the lists, in the order of their names. "#" begins a title.
func Groups() ([]Group, error) { return readGroups(lists) }

func readGroups(lists fs.FS) ([]Group, error) {
	var groups []Group
	seen := map[string]bool{}
	files, err := fs.Glob(lists, "clauses/*.txt")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		b, err := fs.ReadFile(lists, file)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(b), "\n") {
			title, isTitle := strings.CutPrefix(line, "# ")
			switch {
			case line == "":
			case isTitle:
				groups = append(groups, Group{Title: title})
			default:
				c, err := parseClause(line)
				if err != nil || len(groups) == 0 || seen[c.Ref] {
					return nil, fmt.Errorf("%s:%d: %q is no clause, has no title above it, or is there twice", file, i+1, line)
				}
				seen[c.Ref] = true
				last := &groups[len(groups)-1]
				last.Clauses = append(last.Clauses, c)
			}
		}
	}
	return groups, nil
}

func parseClause(line string) (Clause, error) {
	m := clauseLine.FindStringSubmatch(line)
	if m == nil {
		return Clause{}, fmt.Errorf("no clause: %q", line)
	}
	c := Clause{Ref: m[1], State: m[2], Text: m[3]}
	if c.State == "" {
		c.State = States[0]
	}
	if !slices.Contains(States, c.State) {
		return Clause{}, fmt.Errorf("no state: %q", c.State)
	}
	return c, nil
}

// Tests finds the tests below root that keep clauses, by file and place.
func Tests(root fs.FS) ([]Test, error) {
	var tests []Test
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		found, err := testsOf(file, src)
		tests = append(tests, found...)
		return err
	})
	return tests, err
}

// testsOf finds the tests of one file. A marker that stands outside of a test
// is an error: it would keep nothing.
func testsOf(file string, src []byte) ([]Test, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var tests []Test
	for _, group := range parsed.Comments {
		refs := markers(group)
		if len(refs) == 0 {
			continue
		}
		name := testAround(parsed, group)
		if name == "" {
			return nil, fmt.Errorf("%s: %q stands at no test", fset.Position(group.Pos()), refs)
		}
		if n := len(tests); n > 0 && tests[n-1].Name == name {
			tests[n-1].Refs = append(tests[n-1].Refs, refs...)
			continue
		}
		tests = append(tests, Test{Name: name, File: path.Clean(file), Refs: refs})
	}
	return tests, nil
}

// markers returns the references in the "Keeps:" lines of a comment.
func markers(group *ast.CommentGroup) []string {
	var refs []string
	for _, c := range group.List {
		list, ok := strings.CutPrefix(c.Text, "// Keeps: ")
		if !ok {
			continue
		}
		for ref := range strings.SplitSeq(strings.TrimSuffix(list, "."), ", ") {
			refs = append(refs, ref)
		}
	}
	return refs
}

// testAround names the test that the comment is inside of or documents.
func testAround(file *ast.File, group *ast.CommentGroup) string {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !testName.MatchString(f.Name.Name) {
			continue
		}
		if f.Doc == group || f.Pos() <= group.Pos() && group.End() <= f.End() {
			return f.Name.Name
		}
	}
	return ""
}

var testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z]`)
