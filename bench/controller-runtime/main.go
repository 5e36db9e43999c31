// The controller-runtime side of the benchmarks: its priority queue, and whole controllers. Lines on stdin control the program; ../PROTOCOL.md
// defines them.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"queue"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func main() {
	log.SetFlags(0)
	options := parseArguments(os.Args[1:])
	obey, err := prepare(options)
	if err != nil {
		log.Fatal(err)
	}
	if err := serve(obey, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	kubeconfig string
	controller string
	workers    int
}

// parseArguments exits with code 2 if it does not know an argument.
func parseArguments(arguments []string) options {
	var options options
	flags := flag.NewFlagSet("controller-runtime", flag.ExitOnError)
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "where the server is")
	flags.StringVar(&options.controller, "controller", "", "children or storm")
	flags.IntVar(&options.workers, "workers", 1, "how many objects the controller reconciles at a time")
	_ = flags.Parse(arguments)
	if flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "there is an argument too many")
		os.Exit(2)
	}
	return options
}

// obeyer carries out a command, and returns the answer with its name.
type obeyer func(command, argument string) (string, event, error)

// prepare makes a controller if the arguments name one, and queues otherwise.
func prepare(options options) (obeyer, error) {
	if options.controller != "" {
		owners, err := newOwners(options)
		if err != nil {
			return nil, err
		}
		return owners.obey, nil
	}
	bench := &queue.Bench{New: func() queue.Queue {
		// Without a name it has no metrics.
		return priorityqueue.New[string]("")
	}}
	return func(command, argument string) (string, event, error) {
		if name, answer, err, known := bench.Obey(command, argument); known {
			return name, answer, err
		}
		return "", nil, fmt.Errorf("controller-runtime has no %q", command)
	}, nil
}

// event is a line of the protocol without its field "event".
type event map[string]any

// serve answers each line of stdin with one line, until stdin ends.
func serve(obey obeyer, commands io.Reader, answers io.Writer) error {
	encoder := json.NewEncoder(answers)
	tell := func(name string, event event) error {
		event["event"] = name
		return encoder.Encode(event)
	}
	if err := tell("started", event{"version": "controller-runtime " + version()}); err != nil {
		return err
	}
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		name, answer, err := "collected", event(nil), error(nil)
		if command == "collect" {
			answer = collect()
		} else {
			name, answer, err = obey(command, argument)
		}
		if err != nil {
			name, answer = "failed", event{"reason": err.Error()}
		}
		if err := tell(name, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// collect returns unused memory to the system. The second collection frees what only finalizers held during the first.
func collect() event {
	for range 2 {
		runtime.GC()
		debug.FreeOSMemory()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return event{"heapBytes": stats.HeapAlloc}
}

// version returns the version of controller-runtime in this build.
func version() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, module := range info.Deps {
			if module.Path == "sigs.k8s.io/controller-runtime" {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "of unknown version"
}
