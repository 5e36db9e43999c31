// The client-go side of the benchmarks. Arguments and lines on stdin control the program; ../PROTOCOL.md defines both.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

func main() {
	log.SetFlags(0)
	silenceAllButErrors()
	options := parseArguments(os.Args[1:])
	session, err := newSession(options)
	if err != nil {
		log.Fatal(err)
	}
	if err := session.serve(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// silenceAllButErrors lets klog write nothing but errors to stderr.
func silenceAllButErrors() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

// event is a line of the protocol without its field "event".
type event map[string]any

// serve answers each line of stdin with one line, until stdin ends.
func (s *session) serve(commands io.Reader, answers io.Writer) error {
	encoder := json.NewEncoder(answers)
	tell := func(name string, event event) error {
		event["event"] = name
		return encoder.Encode(event)
	}
	if err := tell("started", event{
		"version":   "client-go " + clientVersion(),
		"watchList": features.FeatureGates().Enabled(features.WatchListClient),
	}); err != nil {
		return err
	}
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		name, answer, err := s.obey(lines.Text())
		if err != nil {
			name, answer = "failed", event{"reason": err.Error()}
		}
		if err := tell(name, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (s *session) obey(line string) (string, event, error) {
	command, argument, _ := strings.Cut(line, " ")
	switch command {
	case "start":
		answer, err := s.start()
		return "synced", answer, err
	case "collect":
		return "collected", collect(), nil
	case "digest":
		return "digest", s.digest(), nil
	case "until":
		var place struct{ Key, ResourceVersion string }
		if err := parse(argument, &place); err != nil {
			return "", nil, err
		}
		answer, err := s.until(place.Key, place.ResourceVersion)
		return "reached", answer, err
	case "current":
		var place struct{ Versions map[string]string }
		if err := parse(argument, &place); err != nil {
			return "", nil, err
		}
		versions, err := parseVersions(place.Versions)
		if err != nil {
			return "", nil, err
		}
		answer, err := s.current(versions)
		return "current", answer, err
	case "stuck":
		return "stuck", event{}, s.stuck()
	case "index-late":
		answer, err := s.indexLate()
		return "indexed", answer, err
	case "lookups":
		var wish struct{ Seconds float64 }
		if err := parse(argument, &wish); err != nil {
			return "", nil, err
		}
		answer, err := s.lookups(seconds(wish.Seconds))
		return "lookups", answer, err
	case "reads":
		var wish struct {
			Seconds      float64
			Objects, Hot int
		}
		if err := parse(argument, &wish); err != nil {
			return "", nil, err
		}
		answer, err := reads(seconds(wish.Seconds), wish.Objects, wish.Hot)
		return "reads", answer, err
	}
	if name, answer, err, known := s.queues.Obey(command, argument); known {
		return name, answer, err
	}
	return "", nil, fmt.Errorf("client-go has no %q", command)
}

func parse(argument string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(argument))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// parseVersions reads resourceVersions by GROUP/VERSION/PLURAL/KIND.
func parseVersions(texts map[string]string) (map[string]uint64, error) {
	versions := map[string]uint64{}
	for name, text := range texts {
		resource, err := parseResource(name)
		if err != nil {
			return nil, err
		}
		if versions[resource.String()], err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, err
		}
	}
	return versions, nil
}

// clientVersion returns the version of client-go in this build.
func clientVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/client-go" {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "of unknown version"
}
