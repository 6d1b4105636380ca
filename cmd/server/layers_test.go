package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers says which of our packages each package may import (design.md §2).
// Only programs are free. Test files are looked at too, but may use what is
// made for tests.
var layers = map[string][]string{
	"internal/cks":             {},
	"migrations":               {},
	"internal/embeddedpg":      {},
	"api":                      {}, // the API document
	"internal/http/api":        {},
	"internal/secretbox":       {},
	"internal/store":           {"internal/cks", "internal/secretbox", "migrations"},
	"internal/sim":             {"internal/cks"},
	"internal/kubeconfig":      {"internal/cks"},
	"internal/service":         {"internal/cks", "internal/kubeconfig", "internal/store"},
	"internal/jobs":            {"internal/cks", "internal/store"},
	"internal/http":            {"internal/cks", "internal/http/api", "api"},
	"internal/store/storetest": {"internal/cks", "internal/secretbox", "internal/store", "internal/embeddedpg", "migrations"},
	"internal/invariant":       {"internal/cks", "internal/store", "internal/sim"},
	"internal/conformance":     {},
	"internal/model":           {"internal/service"}, // tests only
}

// confined says where a library may be imported: there and below.
var confined = map[string][]string{
	"net/http":                  {"internal/http", "cmd"},
	"github.com/go-chi/chi":     {"internal/http"},
	"github.com/swaggest/swgui": {"internal/http"},
	"github.com/jackc/pgx":      {"internal/store", "internal/embeddedpg", "cmd"},
	"github.com/golang-migrate": {"internal/store"},
	"github.com/testcontainers": {"internal/store/storetest"},
}

// pure lists the packages that import the standard library only, and of ours
// nothing.
var pure = []string{"internal/cks", "internal/secretbox", "migrations", "api"}

const module = "ckscale/"

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	for pkg, imports := range listImports(t, `{{join .Imports " "}}`) {
		allowed, known := layers[pkg]
		if !known && !strings.HasPrefix(pkg, "cmd/") {
			t.Errorf("%s is not in layers: say what it may import", pkg)
		}
		for _, imp := range imports {
			if p, ours := strings.CutPrefix(imp, module); ours && known && !slices.Contains(allowed, p) {
				t.Errorf("%s may not import %s", pkg, p)
			}
			if slices.Contains(pure, pkg) && strings.Contains(imp, ".") {
				t.Errorf("%s may not import %s: only the standard library", pkg, imp)
			}
			if where := confinement(imp); where != nil && !within(pkg, where) {
				t.Errorf("%s may not import %s: only %v may", pkg, imp, where)
			}
		}
	}
}

// Tests of a package may go around it, but not above it.
func TestTestsImportDownward(t *testing.T) {
	t.Parallel()
	helpers := []string{
		"internal/store", "internal/store/storetest", "internal/cks", "migrations",
		"internal/invariant",
		"internal/sim", "internal/jobs", // the world and who uses it are tested against each other
	}
	for pkg, imports := range listImports(t, `{{join .TestImports " "}} {{join .XTestImports " "}}`) {
		for _, imp := range imports {
			p, ours := strings.CutPrefix(imp, module)
			if ours && p != pkg && !strings.HasPrefix(pkg, "cmd/") && !slices.Contains(layers[pkg], p) && !slices.Contains(helpers, p) {
				t.Errorf("tests of %s may not import %s", pkg, p)
			}
		}
	}
}

// confinement returns where imp may be imported; nil means anywhere.
func confinement(imp string) []string {
	for lib, where := range confined {
		if imp == lib || strings.HasPrefix(imp, lib+"/") {
			return where
		}
	}
	return nil
}

func within(pkg string, where []string) bool {
	return slices.ContainsFunc(where, func(w string) bool { return pkg == w || strings.HasPrefix(pkg, w+"/") })
}

// listImports returns what each of our packages imports, by format.
func listImports(t *testing.T, format string) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} "+format, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	imports := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			imports[strings.TrimPrefix(f[0], module)] = f[1:]
		}
	}
	if len(imports) < 5 {
		t.Fatalf("go list found only %v", imports)
	}
	return imports
}
