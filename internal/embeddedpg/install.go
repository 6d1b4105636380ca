package embeddedpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// minMajor is the oldest PostgreSQL that our SQL and settings work with.
const minMajor = 15

// places are where distributions put PostgreSQL beside PATH.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*", "/usr/local/pgsql/bin"}

// FindBinaries returns the folder of postgres and initdb: given, else
// $PG_BINDIR, else the newest one in PATH and the usual places. If dataDir
// (PostgreSQL's own data directory, "" for none) holds data, only their major
// version will do. The error says what to install.
func FindBinaries(given, dataDir string) (string, error) {
	var want int
	if dataDir != "" {
		b, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if err == nil {
			if want, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
				return "", fmt.Errorf("%s/PG_VERSION: %w", dataDir, err)
			}
		}
	}
	if given == "" {
		given = os.Getenv("PG_BINDIR")
	}
	found := installed(given)
	for _, p := range found {
		if p.major >= minMajor && (want == 0 || p.major == want) {
			return p.bin, nil
		}
	}
	return "", notFound(given, dataDir, want, found)
}

func notFound(given, dataDir string, want int, found []installation) error {
	var have []string
	for _, p := range found {
		have = append(have, fmt.Sprintf("%d in %s", p.major, p.bin))
	}
	switch {
	case want > 0 && len(have) > 0:
		return fmt.Errorf("the data in %s were made by PostgreSQL %d, but what is installed is %s; they were left as they are: "+
			"apt-get install postgresql-%d, or set PG_BINDIR to its binaries, or move the folder away to start with an empty database, "+
			"or set DATABASE_URL", dataDir, want, strings.Join(have, ", "), want)
	case len(have) > 0:
		return fmt.Errorf("PostgreSQL %d or newer is needed, but what is installed is %s: apt-get install postgresql, "+
			"or set PG_BINDIR to the folder of postgres and initdb, or set DATABASE_URL", minMajor, strings.Join(have, ", "))
	case given != "":
		return fmt.Errorf("no PostgreSQL (postgres and initdb) in %s: apt-get install postgresql, "+
			"or set PG_BINDIR to the right folder, or set DATABASE_URL", given)
	}
	return errors.New("no PostgreSQL is installed here: apt-get install postgresql, " +
		"or set PG_BINDIR to the folder of postgres and initdb, or set DATABASE_URL to a PostgreSQL that runs elsewhere")
}

type installation struct {
	bin   string
	major int
}

// installed lists what there is, the newest first; only given if that is set.
func installed(given string) []installation {
	dirs := []string{given}
	if given == "" {
		dirs = nil
		if p, err := exec.LookPath("postgres"); err == nil {
			dirs = append(dirs, filepath.Dir(p))
		}
		for _, pattern := range places {
			more, _ := filepath.Glob(pattern) // fails on a bad pattern only
			dirs = append(dirs, more...)
		}
	}
	var found []installation
	for _, d := range dirs {
		if n, err := majorOf(d); err == nil {
			found = append(found, installation{d, n})
		}
	}
	slices.SortStableFunc(found, func(a, b installation) int { return b.major - a.major })
	return found
}

// majorOf asks the programs in a folder for their version.
func majorOf(bin string) (int, error) {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return 0, err
	}
	out, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(out)) // postgres (PostgreSQL) 15.18 (Debian …)
	if len(f) < 3 {
		return 0, fmt.Errorf("%s/postgres --version says %q", bin, out)
	}
	digits := f[2]
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i] // 15.18, 18beta1
	}
	return strconv.Atoi(digits)
}

// runAs is the user that PostgreSQL runs as; nil means ours. It refuses root,
// so root hands over to the owner of the data, else postgres, else nobody.
func runAs(data string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if fi, err := os.Stat(data); err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			return &syscall.Credential{Uid: st.Uid, Gid: st.Gid}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody: run as another user")
}

// reachable checks that the user of cred can enter all folders above dir;
// PostgreSQL's own words about that do not say which one is closed.
func reachable(dir string, cred *syscall.Credential) error {
	if cred == nil {
		return nil
	}
	for p := filepath.Dir(dir); ; p = filepath.Dir(p) {
		fi, err := os.Stat(p)
		if err != nil {
			return err
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: no owner", p)
		}
		enter := fi.Mode()&0o001 != 0
		switch {
		case st.Uid == cred.Uid:
			enter = fi.Mode()&0o100 != 0
		case st.Gid == cred.Gid:
			enter = fi.Mode()&0o010 != 0
		}
		if !enter {
			return fmt.Errorf("%s is closed to user %d, as whom PostgreSQL has to run because it refuses root: "+
				"choose a folder elsewhere, or chmod o+x %s", p, cred.Uid, p)
		}
		if p == "/" {
			return nil
		}
	}
}
