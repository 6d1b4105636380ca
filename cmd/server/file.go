package main

import (
	"errors"
	"os"
	"path/filepath"
)

// writeFile replaces a file so that a reader sees all of it or none.
func writeFile(path string, content []byte, mode os.FileMode) error {
	return placeFile(path, content, mode, os.Rename)
}

// placeFile writes a file beside path and puts it there by place: os.Rename
// replaces what is there, os.Link fails with os.ErrExist.
func placeFile(path string, content []byte, mode os.FileMode, place func(from, to string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.Remove(f.Name()); !errors.Is(e, os.ErrNotExist) { // it was renamed
			err = errors.Join(err, e)
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}
