package conformance

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Markdown returns the table of all clauses with the tests that keep them. The
// error names every clause that no test keeps, and every reference of a test
// that no clause has.
func Markdown(groups []Group, tests []Test) (string, error) {
	keep := map[string][]Test{}
	for _, t := range tests {
		for _, ref := range t.Refs {
			keep[ref] = append(keep[ref], t)
		}
	}
	var errs []error
	var body strings.Builder
	count := map[string]int{}
	for _, g := range groups {
		fmt.Fprintf(&body, "\n## %s\n\n| clause | what it says | state | tests |\n| --- | --- | --- | --- |\n", g.Title)
		for _, c := range g.Clauses {
			if len(keep[c.Ref]) == 0 {
				errs = append(errs, fmt.Errorf("no test keeps %s: %s", c.Ref, c.Text))
			}
			count[c.State]++
			fmt.Fprintf(&body, "| %s | %s | %s | %s |\n", c.Ref, strings.ReplaceAll(c.Text, "|", "\\|"), c.State, links(keep[c.Ref]))
			delete(keep, c.Ref)
		}
	}
	for ref, tests := range keep {
		errs = append(errs, fmt.Errorf("%s of %s: no clause has it", tests[0].Name, ref))
	}
	return header(count) + body.String(), errors.Join(errs...)
}

// header says what the table is, and how many clauses are in which state.
func header(count map[string]int) string {
	total := 0
	var states []string
	for _, s := range States {
		total += count[s]
		states = append(states, fmt.Sprintf("%d %s", count[s], s))
	}
	return fmt.Sprintf(`# What ckscale promises, and the tests that keep it

Made by `+"`make generate`"+` from the lists in [internal/conformance/clauses](../internal/conformance/clauses) and
from the lines "Keeps:" in the tests; `+"`make verify`"+` fails for a clause without a test.

%d clauses: %s. *kept*: as CloudStack has it, or as the report wants it. *ours*: in our own way, for
the reason given ([differences](differences.md)). *open*: not there yet; the test shows what is answered meanwhile.
`, total, strings.Join(states, ", "))
}

// links names each test once, with a link to its file.
func links(tests []Test) string {
	var list []string
	seen := map[string]bool{}
	for _, t := range tests {
		if key := path.Dir(t.File) + t.Name; !seen[key] {
			seen[key] = true
			list = append(list, fmt.Sprintf("[%s](../%s)", t.Name, t.File))
		}
	}
	return strings.Join(list, ", ")
}
