package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// options are the flags of `control-plane run`.
type options struct {
	compactionInterval    time.Duration
	watchCache            bool
	defaultWatchCacheSize int
	featureGates          featureGates
	controllerManager     bool
	apiserverArgs         keyValues
	startTimeout          time.Duration
	stopTimeout           time.Duration
	verbose               bool
}

// featuresOff serve several API servers that share an etcd. With one they cost
// start-up time and make writes of their own.
var featuresOff = featureGates{
	"APIServerIdentity":                   "false",
	"UnknownVersionInteroperabilityProxy": "false",
}

func parseOptions(args []string) (options, error) {
	o := options{featureGates: maps.Clone(featuresOff), apiserverArgs: keyValues{}}
	flags := flag.NewFlagSet("control-plane run", flag.ContinueOnError)
	flags.DurationVar(&o.compactionInterval, "compaction-interval", 5*time.Minute,
		"how often the API server compacts etcd; 0 for never")
	flags.BoolVar(&o.watchCache, "watch-cache", true,
		"serve lists and watches from the API server's memory instead of etcd")
	flags.IntVar(&o.defaultWatchCacheSize, "default-watch-cache-size", 0,
		"kube-apiserver --default-watch-cache-size; 0 leaves Kubernetes' own default")
	flags.Var(o.featureGates, "feature-gates",
		"comma-separated NAME=true|false, for API server and controller manager")
	flags.BoolVar(&o.controllerManager, "controller-manager", false,
		"run kube-controller-manager, less the controllers that act on nodes")
	flags.Var(o.apiserverArgs, "apiserver-arg",
		"KEY=VALUE passed to kube-apiserver as --KEY=VALUE instead of our default; repeatable")
	flags.DurationVar(&o.startTimeout, "start-timeout", 2*time.Minute,
		"how long the API server may take until it is ready")
	flags.DurationVar(&o.stopTimeout, "stop-timeout", 30*time.Second,
		"how long the API server may take to stop gracefully before it is killed")
	flags.BoolVar(&o.verbose, "verbose", false, "log to stderr instead of files")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

// keyValues collects KEY=VALUE pairs; the last value of a key counts.
type keyValues map[string]string

func (kv keyValues) String() string {
	pairs := make([]string, 0, len(kv))
	for _, key := range slices.Sorted(maps.Keys(kv)) {
		pairs = append(pairs, key+"="+kv[key])
	}
	return strings.Join(pairs, ",")
}

func (kv keyValues) Set(pair string) error {
	key, value, found := strings.Cut(pair, "=")
	key = strings.TrimLeft(key, "-")
	if !found || key == "" {
		return fmt.Errorf("want KEY=VALUE, got %q", pair)
	}
	kv[key] = value
	return nil
}

// featureGates are keyValues written as Kubernetes writes them: several in one
// flag, with commas between them.
type featureGates map[string]string

func (g featureGates) String() string { return keyValues(g).String() }

func (g featureGates) Set(list string) error {
	for gate := range strings.SplitSeq(list, ",") {
		if err := keyValues(g).Set(strings.TrimSpace(gate)); err != nil {
			return err
		}
	}
	return nil
}
