package main

import (
	"slices"
	"testing"
)

func TestOptionsBecomeArguments(t *testing.T) {
	o, err := parseOptions([]string{
		"--watch-cache=false",
		"--compaction-interval=10s",
		"--feature-gates=APIServerIdentity=true,WatchList=false",
		"--apiserver-arg", "max-requests-inflight=7",
		"--apiserver-arg=--event-ttl=5m",
	})
	if err != nil {
		t.Fatal(err)
	}
	args := apiserverArguments(o, &credentials{}, "unix:///etcd.sock", 1)
	for _, want := range []string{
		"--watch-cache=false",
		"--etcd-compaction-interval=10s",
		// A gate that we switch off can be switched on again.
		"--feature-gates=APIServerIdentity=true,UnknownVersionInteroperabilityProxy=false,WatchList=false",
		// A passed-through argument takes the place of ours.
		"--max-requests-inflight=7",
		"--event-ttl=5m",
		"--disable-admission-plugins=ServiceAccount",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing in %q", want, args)
		}
	}
	if slices.Contains(args, "--max-requests-inflight=3000") {
		t.Error("our default stands beside the argument that replaces it")
	}
}

func TestOptionsDoNotShareDefaults(t *testing.T) {
	if _, err := parseOptions([]string{"--feature-gates=APIServerIdentity=true"}); err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.featureGates["APIServerIdentity"] != "false" {
		t.Error("one run's gates leak into the next")
	}
}

func TestBadOptions(t *testing.T) {
	for _, args := range [][]string{
		{"--apiserver-arg", "no-value"},
		{"--feature-gates", "Gate"},
		{"surplus"},
	} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
