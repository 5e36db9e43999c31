// The client-go side of the benchmarks. Arguments and lines on stdin control the program; ../PROTOCOL.md defines both.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"shared"
	"strconv"

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
	started := event{
		"version":   "client-go " + shared.VersionOf("k8s.io/client-go"),
		"watchList": features.FeatureGates().Enabled(features.WatchListClient),
	}
	if err := shared.Serve(started, session.obey); err != nil {
		log.Fatal(err)
	}
}

// silenceAllButErrors lets klog write nothing but errors to stderr.
func silenceAllButErrors() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

type event = shared.Event

func (s *session) obey(command, argument string) (string, event, error) {
	switch command {
	case "start":
		answer, err := s.start()
		return "synced", answer, err
	case "digest":
		return "digest", s.digest(), nil
	case "until":
		var place struct{ Key, ResourceVersion string }
		if err := shared.Parse(argument, &place); err != nil {
			return "", nil, err
		}
		answer, err := s.until(place.Key, place.ResourceVersion)
		return "reached", answer, err
	case "current":
		var place struct{ Versions map[string]string }
		if err := shared.Parse(argument, &place); err != nil {
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
	case "lookups":
		var wish struct{ Seconds float64 }
		if err := shared.Parse(argument, &wish); err != nil {
			return "", nil, err
		}
		answer, err := s.lookups(seconds(wish.Seconds))
		return "lookups", answer, err
	case "reads":
		var wish struct {
			Seconds      float64
			Objects, Hot int
		}
		if err := shared.Parse(argument, &wish); err != nil {
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
