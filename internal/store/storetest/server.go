package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"ckscale/internal/embeddedpg"
)

// startTime is how long a server may take to start: initdb on a busy machine,
// or an image that has to be pulled.
const startTime = 3 * time.Minute

// fast are PostgreSQL settings for data that nobody needs after a crash.
var fast = map[string]string{
	"fsync":              "off",
	"full_page_writes":   "off",
	"synchronous_commit": "off",
	"max_connections":    "400",
}

// server returns the URL of the PostgreSQL that the tests of this process use:
// TEST_DATABASE_URL, else a private one from local binaries, else a container.
var server = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("TEST_DATABASE_URL"); given != "" {
		if u, err := url.Parse(given); err != nil || u.Scheme == "" {
			return "", errors.New("TEST_DATABASE_URL must be of the form postgres://user@host/database")
		}
		return given, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	bin, missing := embeddedpg.FindBinaries("", "")
	if missing == nil {
		return private(ctx, bin)
	}
	given, err := container(ctx)
	if err != nil {
		return "", fmt.Errorf("the tests need a PostgreSQL: install one (apt-get install postgresql), or start Docker, "+
			"or set TEST_DATABASE_URL to a server where databases may be created: %w", errors.Join(missing, err))
	}
	return given, nil
})

// private starts a server of this process. It dies with the process.
func private(ctx context.Context, bin string) (string, error) {
	dir, err := os.MkdirTemp("", "ckscale-test-")
	if err != nil {
		return "", fmt.Errorf("folder for the test database: %w", err)
	}
	if err := removeAtExit(dir); err != nil {
		return "", err
	}
	s, err := embeddedpg.Start(ctx, embeddedpg.Config{Dir: dir, BinDir: bin, Database: "postgres", Settings: fast})
	if err != nil {
		return "", fmt.Errorf("start the test database: %w", err)
	}
	return s.URL(), nil
}

// removeAtExit lets a shell of its own process group wait for the end of this
// process, however it ends, and remove dir then. The server dies at the same
// moment and may still be writing, so the shell tries more than once.
func removeAtExit(dir string) error {
	const script = `cat >/dev/null; for try in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$1" 2>/dev/null && exit; sleep 1; done`
	cmd := exec.Command("sh", "-c", script, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Ctrl-C does not end it
	if _, err := cmd.StdinPipe(); err != nil {            // open until this process ends
		return fmt.Errorf("remove %s at exit: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("remove %s at exit: %w", dir, err)
	}
	atExit = append(atExit, cmd)
	return nil
}

// atExit keeps the pipes from being closed by the garbage collector.
var atExit []*exec.Cmd

// container starts a server in Docker; testcontainers' reaper removes it.
func container(ctx context.Context) (_ string, err error) {
	defer func() { // without Docker the library panics in places
		if p := recover(); p != nil {
			err = fmt.Errorf("no Docker: %v", p)
		}
	}()
	image := os.Getenv("TEST_POSTGRES_IMAGE")
	if image == "" {
		image = "postgres:17-alpine"
	}
	var settings []string
	for name, value := range fast {
		settings = append(settings, "-c", name+"="+value)
	}
	c, err := postgres.Run(ctx, image, postgres.WithDatabase("ckscale"), postgres.WithUsername("ckscale"),
		postgres.WithPassword("ckscale"), postgres.BasicWaitStrategies(), testcontainers.WithCmdArgs(settings...))
	if err != nil {
		return "", fmt.Errorf("start %s: %w", image, err)
	}
	address, err := c.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return "", fmt.Errorf("address of %s: %w", image, err)
	}
	return address, nil
}
