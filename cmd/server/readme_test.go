package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// promised is a part of an answer that a comment in the README shows.
var promised = regexp.MustCompile(`"\w+":("[^"…]+"|\d+)`)

// The README's first scale, with curl: each line that asks the server is run
// after those before it, again until the answer has what its comment shows.
func TestReadmeFirstScale(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "```sh\nck() {")
	text, _, _ = strings.Cut("ck() {"+text, "```")
	c := demo(t, nil)
	host, _ := c.site()
	text = strings.NewReplacer("127.0.0.1:8080", host, "me:secret", c.keys.API+":"+c.keys.Secret).Replace(text)
	asks := regexp.MustCompile(`(?m)^ck .*$`)
	setup := asks.ReplaceAllString(text, "")
	lines, job := asks.FindAllString(text, -1), ""
	for _, line := range lines {
		line, comment, _ := strings.Cut(line, "#")
		line = strings.Replace(line, "jobid=…", "jobid="+job, 1)
		shown := promised.FindAllString(comment, -1)
		if i := slices.Index(shown, `"jobstatus":0`); i >= 0 { // in the end
			shown[i] = `"jobstatus":1`
		}
		c.until(line+"gives "+comment, time.Minute, func() bool {
			out, err := exec.CommandContext(t.Context(), "bash", "-euc", setup+line).CombinedOutput()
			if id := regexp.MustCompile(`"jobid":"([^"]+)"`).FindSubmatch(out); id != nil {
				job = string(id[1])
			}
			if err != nil || strings.Contains(string(out), "errorcode") {
				t.Fatalf("%s gives %s: %v", line, out, err)
			}
			return !slices.ContainsFunc(shown, func(s string) bool { return !strings.Contains(string(out), s) })
		})
		if strings.Contains(line, "scale") { // the next lines are for when it has ended
			c.ended(job)
		}
	}
	if v := c.cluster(); len(lines) < 8 || v["size"] != 2.0 || c.calls("node.drain") != 0 {
		t.Errorf("%d lines, size %v, %d drains", len(lines), v["size"], c.calls("node.drain"))
	}
}
