// Package shared has what the benchmarks of all Go libraries have in common: the lines of ../PROTOCOL.md, delays,
// checksums, and work queues without a server.
package shared

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Event is a line of the protocol without its field "event".
type Event = map[string]any

// Serve answers each line of stdin with one line, until stdin ends. obey carries out a command, and returns the answer
// with its name.
func Serve(started Event, obey func(command, argument string) (string, Event, error)) error {
	encoder := json.NewEncoder(os.Stdout)
	tell := func(name string, event Event) error {
		event["event"] = name
		return encoder.Encode(event)
	}
	if err := tell("started", started); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		name, answer, err := "collected", Event(nil), error(nil)
		if command == "collect" {
			answer = collect()
		} else {
			name, answer, err = obey(command, argument)
		}
		if err != nil {
			name, answer = "failed", Event{"reason": err.Error()}
		}
		if err := tell(name, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Parse reads the argument of a command.
func Parse(argument string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(argument))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// collect returns unused memory to the system. The second collection frees what only finalizers held during the first.
func collect() Event {
	for range 2 {
		runtime.GC()
		debug.FreeOSMemory()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return Event{"heapBytes": stats.HeapAlloc}
}

// VersionOf returns the version of a module in this build.
func VersionOf(path string) string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, module := range info.Deps {
			if module.Path == path {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "of unknown version"
}
