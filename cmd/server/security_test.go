package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/security.md relies on is there, and every claim has one.
func TestSecurityPageNamesItsTests(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	page, err := fs.ReadFile(root, "docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := fs.ReadFile(root, path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	claims := false
	name := regexp.MustCompile(`\bTest[A-Z]\w+`)
	for line := range strings.Lines(string(page)) {
		named := name.FindAllString(line, -1)
		switch {
		case line == "| claim | tests |\n":
			claims = true
		case !strings.HasPrefix(line, "|"):
			claims = false
		case claims && !strings.HasPrefix(line, "| ---") && len(named) == 0:
			t.Errorf("no test keeps: %s", line)
		}
		for _, n := range named {
			if !tests[n] {
				t.Errorf("there is no %s: %s", n, line)
			}
		}
	}
}

// Keys that we generate have 26 characters of 5 bits each, the secret ones
// twice as many, and none comes twice.
func TestGeneratedKeysAreLong(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		k := newKeys()
		if len(k.API) != 26 || len(k.Secret) != 52 || seen[k.API] || seen[k.Secret] {
			t.Fatalf("keys of %d and %d characters", len(k.API), len(k.Secret))
		}
		seen[k.API], seen[k.Secret] = true, true
	}
}
