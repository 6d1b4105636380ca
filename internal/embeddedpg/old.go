package embeddedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Patience with the processes of an earlier server, which lost its supervisor.
const (
	oldFast      = 10 * time.Second // then the shutdown becomes an immediate one
	oldImmediate = 20 * time.Second // then the start is given up
)

// endOld ends what an earlier server left behind: its processes, then the
// files that name them. PostgreSQL itself would refuse to start if the number
// in such a file had been given to another process since.
func (s *Server) endOld(ctx context.Context) error {
	pidFile := filepath.Join(s.data, "postmaster.pid")
	begin, told := time.Now(), syscall.Signal(0)
	for {
		old, err := processesIn(s.data)
		if err != nil {
			return err
		}
		if len(old) == 0 {
			return errors.Join(removeIfThere(pidFile), removeIfThere(filepath.Join(s.sock, ".s.PGSQL."+port+".lock")))
		}
		sig := fastShutdown
		if time.Since(begin) > oldFast {
			sig = immediateShutdown
		}
		if time.Since(begin) > oldImmediate {
			return fmt.Errorf("processes %v of an earlier server in %s do not end", old, s.data)
		}
		if sig != told {
			tell(old, postmaster(pidFile), sig)
			told = sig
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the earlier server in %s to end: %w", s.data, ctx.Err())
		case <-time.After(poll):
		}
	}
}

// tell signals the postmaster, which ends the others. Without one they are
// orphans, which end by themselves unless they are busy.
func tell(old []int, postmaster int, sig syscall.Signal) {
	if slices.Contains(old, postmaster) {
		old = []int{postmaster}
	} else if sig == fastShutdown {
		sig = syscall.SIGTERM // a session takes SIGINT for "cancel the query"
	}
	for _, pid := range old {
		_ = syscall.Kill(pid, sig) // one that has just ended is fine
	}
}

// postmaster is the number in the first line of postmaster.pid, or 0.
func postmaster(pidFile string) int {
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0
	}
	return pid
}

// processesIn returns the PostgreSQL processes of a data directory: all of
// them have it as their working directory.
func processesIn(data string) ([]int, error) {
	want, err := os.Stat(data)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		proc := filepath.Join("/proc", e.Name())
		// Nobody's shell that happens to stand in the folder.
		if name, err := os.ReadFile(filepath.Join(proc, "comm")); err != nil || strings.TrimSpace(string(name)) != "postgres" {
			continue
		}
		// What we may not look at belongs to another user, and so not to these data.
		if cwd, err := os.Stat(filepath.Join(proc, "cwd")); err == nil && os.SameFile(cwd, want) {
			found = append(found, pid)
		}
	}
	return found, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
