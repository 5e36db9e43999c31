package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const workdirPrefix = "informer-control-plane-"

// workdir is the temporary directory that holds everything a control plane writes. It is locked for as long as the
// supervisor lives, so that a later run can distinguish an abandoned directory from one in use.
type workdir struct {
	path string
	lock *os.File
}

func newWorkdir() (*workdir, error) {
	removeAbandoned()
	path, err := os.MkdirTemp("", workdirPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	lock, err := lockDirectory(path)
	if err != nil {
		_ = os.RemoveAll(path)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &workdir{path: path, lock: lock}, nil
}

func (w *workdir) file(name string) string { return filepath.Join(w.path, name) }

func (w *workdir) remove() error {
	err := os.RemoveAll(w.path)
	_ = w.lock.Close()
	return err
}

// removeAbandoned removes the directories of supervisors that were killed before they could clean up. Best effort: a
// failure here harms no test.
func removeAbandoned() {
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), workdirPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range paths {
		// A directory this young may belong to a run that is about to lock it.
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if lock, err := lockDirectory(path); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

func lockDirectory(path string) (*os.File, error) {
	directory, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(directory.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = directory.Close()
		return nil, err
	}
	return directory, nil
}
