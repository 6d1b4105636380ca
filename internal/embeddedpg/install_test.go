package embeddedpg

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fake makes a folder with programs that claim a version.
func fake(t *testing.T, version string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func dataOf(t *testing.T, major string) string {
	t.Helper()
	data := t.TempDir()
	if major != "" {
		if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

func TestFindBinaries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version, data string
		wantErr             []string // parts of it; none = found
	}{
		{name: "new data", version: "16.2 (Debian 16.2-1)"},
		{name: "same major", version: "17.1", data: "17"},
		{name: "beta", version: "18beta1", data: "18"},
		{name: "newer major", version: "17.1", data: "15",
			wantErr: []string{"made by PostgreSQL 15", "17 in ", "left as they are", "apt-get install postgresql-15", "PG_BINDIR", "DATABASE_URL"}},
		{name: "older major", version: "15.3", data: "16", wantErr: []string{"made by PostgreSQL 16"}},
		{name: "too old", version: "13.9", wantErr: []string{"PostgreSQL 15 or newer", "13 in ", "apt-get install postgresql"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bin := fake(t, c.version)
			got, err := FindBinaries(bin, dataOf(t, c.data))
			if len(c.wantErr) == 0 {
				if err != nil || got != bin {
					t.Fatalf("got %q, %v", got, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("took %s", got)
			}
			for _, part := range c.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestMissingPostgreSQLSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	_, err := FindBinaries(t.TempDir(), "")
	if err == nil {
		t.Fatal("found something in an empty folder")
	}
	for _, part := range []string{"apt-get install postgresql", "PG_BINDIR", "DATABASE_URL"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestNewestInstallationWins(t *testing.T) {
	old, recent := fake(t, "15.3"), fake(t, "17.0")
	t.Setenv("PG_BINDIR", "")
	t.Setenv("PATH", old)
	before := places
	places = []string{recent}
	t.Cleanup(func() { places = before })
	if got, err := FindBinaries("", ""); err != nil || got != recent {
		t.Errorf("for new data: %q, %v", got, err)
	}
	if got, err := FindBinaries("", dataOf(t, "15")); err != nil || got != old {
		t.Errorf("for data of 15: %q, %v", got, err)
	}
	t.Setenv("PG_BINDIR", old)
	if got, err := FindBinaries("", ""); err != nil || got != old {
		t.Errorf("with PG_BINDIR: %q, %v", got, err)
	}
}

// Data that the installed PostgreSQL cannot read are refused and left alone.
func TestForeignDataAreNeverWiped(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	version := filepath.Join(dir, "data", "PG_VERSION")
	if err := os.WriteFile(version, []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), config(dir)); err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 99") {
		t.Errorf("the start says %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "base")); err != nil {
		t.Errorf("the data are gone: %v", err)
	}
}

func TestClosedFolderIsNamed(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(folder(t), "closed")
	if err := os.MkdirAll(filepath.Join(closed, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := reachable(filepath.Join(closed, "dir"), &syscall.Credential{Uid: 4242, Gid: 4242})
	if err == nil || !strings.Contains(err.Error(), closed+" is closed to user 4242") {
		t.Errorf("reachable says %v", err)
	}
	if err := reachable(closed, &syscall.Credential{Uid: 4242, Gid: 4242}); err != nil {
		t.Errorf("the folder itself is made ours, but: %v", err)
	}
}

func TestLongPathIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), strings.Repeat("long/", 20))
	if _, err := Start(t.Context(), config(dir)); err == nil || !strings.Contains(err.Error(), "shorter folder") {
		t.Errorf("the start says %v", err)
	}
}
