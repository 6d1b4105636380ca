package store_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// SQL that reaches the database is made of what stands in the source, in every
// package of the server that can reach it: constants, joined with each other, with numbers
// and with quoted identifiers, through whatever variables, fields and functions
// of ours. So no value of a request can be in it (docs/security.md).
func TestSQLIsMadeOfConstants(t *testing.T) {
	t.Parallel()
	code := loadCode(t, "")
	if problems := code.check(); len(problems) > 0 {
		t.Errorf("SQL text that is not made of constants only; pass values as arguments, $1:\n%s", strings.Join(problems, "\n"))
	}
	if code.sinks < 5 || len(code.done) < 30 {
		t.Errorf("only %d calls were found and %d things looked at", code.sinks, len(code.done))
	}
}

// The check finds every kind of unsafe text, where it says "unsafe", and none
// that is safe.
func TestUnsafeSQLIsFound(t *testing.T) {
	t.Parallel()
	const planted = "testdata/planted.go"
	source, err := os.ReadFile(planted)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for i, line := range strings.Split(string(source), "\n") {
		if strings.Contains(line, "// unsafe") {
			want = append(want, fmt.Sprintf("%s:%d", planted, i+1))
		}
	}
	for _, p := range loadCode(t, planted).check() {
		at, _, _ := strings.Cut(p, ": ")
		got = append(got, at[:strings.LastIndex(at, ":")])
	}
	slices.Sort(got)
	got = slices.Compact(got)
	slices.Sort(want)
	if !slices.Equal(want, got) {
		t.Errorf("found  %q\nwanted %q", got, want)
	}
}

// code is the packages of the server that import the driver, with their types.
type code struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
	sinks int // calls that send SQL

	done     map[any]bool // objects and results that were looked at
	problems []string
}

// result is what a function returns in one place.
type result struct {
	of *types.Func
	at int
}

// loadCode type-checks the packages. planted is one more file of this one.
func loadCode(t *testing.T, planted string) *code {
	t.Helper()
	c := &code{fset: token.NewFileSet(), done: map[any]bool{}, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	exports, ours := map[string]string{}, [][]string{}
	for line := range strings.Lines(goList(t, "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Module}}\t{{.Dir}}\t{{join .GoFiles \" \"}}\t{{join .Imports \" \"}}", "ckscale/cmd/server")) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[f[0]] = f[1]
		if f[2] == "ckscale" && (strings.Contains(f[5], "github.com/jackc/pgx") || strings.Contains(f[5], "database/sql")) {
			ours = append(ours, f)
		}
	}
	conf := types.Config{Importer: importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	for _, f := range ours {
		var files []*ast.File
		for _, name := range strings.Fields(f[4]) {
			files = append(files, c.parse(t, filepath.Join(f[3], name)))
		}
		if planted != "" && f[0] == "ckscale/internal/store" {
			files = append(files, c.parse(t, planted))
		}
		if _, err := conf.Check(f[0], c.fset, files, c.info); err != nil {
			t.Fatal(err)
		}
		c.files = append(c.files, files...)
	}
	return c
}

func (c *code) parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(c.fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return string(out)
}

// senders are the methods that send SQL, ours of these names as well; each of
// their arguments that is a string is SQL.
var senders = []string{
	"Exec", "Query", "QueryRow", "Prepare", "Queue", "ExecParams", "ExecContext", "QueryContext", "QueryRowContext", "PrepareContext",
}

// check returns what is wrong, by place.
func (c *code) check() []string {
	for _, file := range c.files {
		called := map[*ast.Ident]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if id, fn := c.callee(n); fn != nil && slices.Contains(senders, fn.Name()) && fn.Signature().Recv() != nil {
					called[id] = true
					c.sinks++
					c.needStrings(n, fn.Signature())
				}
			case *ast.Ident: // a method that is not called here could be called anywhere
				if fn, ok := c.info.Uses[n].(*types.Func); ok && !called[n] && slices.Contains(senders, fn.Name()) && fn.Signature().Recv() != nil {
					c.problem(n, "the method is passed on")
				}
			}
			return true
		})
	}
	slices.Sort(c.problems)
	return c.problems
}

func (c *code) needStrings(call *ast.CallExpr, sig *types.Signature) {
	for i := range sig.Params().Len() {
		variadic := sig.Variadic() && i == sig.Params().Len()-1
		if b, ok := sig.Params().At(i).Type().Underlying().(*types.Basic); ok && b.Kind() == types.String && !variadic {
			c.need(call.Args[i])
		}
	}
}

func (c *code) problem(n ast.Node, what string) {
	c.problems = append(c.problems, fmt.Sprintf("%s: %s", c.fset.Position(n.Pos()), what))
}

// callee returns the function that is called by its name, as it is declared.
func (c *code) callee(call *ast.CallExpr) (*ast.Ident, *types.Func) {
	f := ast.Unparen(call.Fun)
	switch x := f.(type) {
	case *ast.IndexExpr:
		f = x.X
	case *ast.IndexListExpr:
		f = x.X
	}
	id, ok := f.(*ast.Ident)
	if sel, isSel := f.(*ast.SelectorExpr); isSel {
		id, ok = sel.Sel, true
	}
	if !ok {
		return nil, nil
	}
	fn, _ := c.info.Uses[id].(*types.Func)
	if fn != nil {
		fn = fn.Origin()
	}
	return id, fn
}

// need makes sure that e is made of constants.
func (c *code) need(e ast.Expr) {
	e = ast.Unparen(e)
	tv := c.info.Types[e]
	if tv.Value != nil || tv.IsNil() {
		return
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		c.need(e.X)
		c.need(e.Y)
	case *ast.Ident:
		c.needObject(c.info.ObjectOf(e), e)
	case *ast.SelectorExpr:
		c.needObject(c.info.ObjectOf(e.Sel), e)
	case *ast.IndexExpr:
		c.need(e.X)
	case *ast.SliceExpr:
		c.need(e.X)
	case *ast.CompositeLit:
		for _, elt := range e.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			c.need(elt)
		}
	case *ast.CallExpr:
		c.needCall(e)
	default:
		c.problem(e, "this could be anything")
	}
}

// makers say which arguments of functions that are not ours have to be made of
// constants, for what they return to be; no argument means that whatever they
// return is safe.
var makers = map[string][]int{
	"strings.Join": {0, 1}, "strings.ReplaceAll": {0, 1, 2}, "strings.Repeat": {0}, "strings.TrimSpace": {0},
	"strconv.Itoa": {}, "strconv.FormatInt": {}, "(github.com/jackc/pgx/v5.Identifier).Sanitize": {},
}

func (c *code) needCall(e *ast.CallExpr) {
	if tv := c.info.Types[e.Fun]; tv.IsType() {
		if b, ok := c.info.TypeOf(e.Args[0]).Underlying().(*types.Basic); !ok || b.Info()&types.IsString == 0 {
			c.problem(e, "this is converted from what is no string")
			return
		}
		c.need(e.Args[0])
		return
	} else if tv.IsBuiltin() && ast.Unparen(e.Fun).(*ast.Ident).Name == "append" {
		for _, arg := range e.Args {
			c.need(arg)
		}
		return
	}
	_, fn := c.callee(e)
	if fn == nil {
		c.problem(e, "nobody knows what is called")
		return
	}
	args, known := makers[fn.FullName()]
	switch {
	case known:
		for _, i := range args {
			c.need(e.Args[i])
		}
	case fn.FullName() == "fmt.Sprintf":
		for _, arg := range e.Args {
			if b, ok := c.info.TypeOf(arg).Underlying().(*types.Basic); !ok || b.Info()&types.IsNumeric == 0 {
				c.need(arg)
			}
		}
	default:
		c.needResult(result{fn, 0}, e)
	}
}
