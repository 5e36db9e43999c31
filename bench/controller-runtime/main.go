// The controller-runtime side of the benchmarks: its priority queue. Lines on stdin control the program; ../PROTOCOL.md
// defines them.
package main

import (
	"bufio"
	"encoding/json"
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
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "there is an argument too many")
		os.Exit(2)
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// event is a line of the protocol without its field "event".
type event map[string]any

// serve answers each line of stdin with one line, until stdin ends.
func serve(commands io.Reader, answers io.Writer) error {
	encoder := json.NewEncoder(answers)
	tell := func(name string, event event) error {
		event["event"] = name
		return encoder.Encode(event)
	}
	if err := tell("started", event{"version": "controller-runtime " + version()}); err != nil {
		return err
	}
	bench := &queue.Bench{New: func() queue.Queue {
		// Without a name it has no metrics.
		return priorityqueue.New[string]("")
	}}
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		name, answer, err := obey(bench, command, argument)
		if err != nil {
			name, answer = "failed", event{"reason": err.Error()}
		}
		if err := tell(name, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func obey(bench *queue.Bench, command, argument string) (string, event, error) {
	if command == "collect" {
		return "collected", collect(), nil
	}
	if name, answer, err, known := bench.Obey(command, argument); known {
		return name, answer, err
	}
	return "", nil, fmt.Errorf("controller-runtime has no %q", command)
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
