// Command server is the whole of ckscale: the API, the runner of jobs and the
// scanner of clusters. Any number of them share one database.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// process is what a command gets from its surroundings.
type process struct {
	getenv  func(string) string
	environ []string
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
}

// command is one thing that the program does.
type command struct {
	name string // one word or two
	args string
	help string
	run  func(p process, ctx context.Context, cfg config, args []string) error
}

// commands lists them all; the first is the default.
var commands = []command{
	{"serve", "", "serve the API and carry out jobs (the default)", process.serve},
	{"healthcheck", "", "ask the server at CKSCALE_ADDR whether it is ready; exit 1 if not", process.healthcheck},
	{"account create", "NAME", "add an account and print its keys, once", process.createAccount},
	{"account rotate", "NAME", "give an account new keys and print them, once; the old ones end within 5 s", process.rotateAccount},
	{"account password", "NAME [-stdin | -none]", "let an account log in: print a new password, once, or read it from standard input; or let it log in no more", process.passwordAccount},
	{"account disable", "NAME", "refuse the keys of an account, within 5 s, and end its sessions", process.disableAccount},
	{"account enable", "NAME", "accept them again", process.enableAccount},
	{"account list", "", "list the accounts, without keys", process.listAccounts},
	{"account encrypt", "", "encrypt secret keys that an older release has stored in clear", process.encryptAccounts},
	{"project create", "NAME ACCOUNT", "add a project that belongs to an account", process.createProject},
	{"project add", "NAME ACCOUNT", "make an account a member of a project, within 5 s", process.addMember},
	{"project remove", "NAME ACCOUNT", "make it none, within 5 s", process.removeMember},
	{"project list", "", "list the projects", process.listProjects},
	{"migrate", "up | version | force N", "bring the schema up to date, show its version, or declare it to be N", process.migrate},
}

// errUsage says that the command line makes no sense.
var errUsage = errors.New("wrong usage; see server -help")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	p := process{getenv: os.Getenv, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	if err := p.run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// run is the program. It returns when ctx has ended and all is tidy, or when
// the command is done.
func (p process) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = []string{commands[0].name}
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		return printHelp(p.stdout)
	}
	for _, c := range commands {
		if rest, named := c.of(args); named {
			cfg, err := loadConfig(p.getenv)
			if err != nil {
				return err
			}
			return c.run(p, ctx, cfg, rest)
		}
	}
	return fmt.Errorf("%q is no command: %w", strings.Join(args, " "), errUsage)
}

// of reports whether args name the command, and what follows its name.
func (c command) of(args []string) (rest []string, named bool) {
	words := strings.Fields(c.name)
	if len(args) < len(words) || !slices.Equal(args[:len(words)], words) {
		return nil, false
	}
	return args[len(words):], true
}

func printHelp(w io.Writer) error {
	if _, err := fmt.Fprint(w, "ckscale scales Kubernetes clusters behind CloudStack's API.\n\nusage: server [command]\n\n"); err != nil {
		return err
	}
	for _, c := range commands {
		if _, err := fmt.Fprintf(w, "  %-30s %s\n", c.name+" "+c.args, c.help); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(w, "\nsettings are environment variables:\n\n"); err != nil {
		return err
	}
	return printSettings(w)
}
