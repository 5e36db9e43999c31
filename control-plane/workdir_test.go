package main

import (
	"os"
	"testing"
	"time"
)

func TestAbandonedDirectories(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	inUse, err := newWorkdir()
	if err != nil {
		t.Fatal(err)
	}
	abandoned, err := newWorkdir()
	if err != nil {
		t.Fatal(err)
	}
	_ = abandoned.lock.Close() // what the kernel does for a killed supervisor
	young, err := newWorkdir()
	if err != nil {
		t.Fatal(err)
	}
	_ = young.lock.Close()
	hourAgo := time.Now().Add(-time.Hour)
	for _, dir := range []*workdir{inUse, abandoned} {
		if err := os.Chtimes(dir.path, hourAgo, hourAgo); err != nil {
			t.Fatal(err)
		}
	}

	removeAbandoned()

	for name, is := range map[string]struct {
		dir  *workdir
		kept bool
	}{"in use": {inUse, true}, "abandoned": {abandoned, false}, "young": {young, true}} {
		if _, err := os.Stat(is.dir.path); (err == nil) != is.kept {
			t.Errorf("directory %s: want kept %v, stat says %v", name, is.kept, err)
		}
	}
}
