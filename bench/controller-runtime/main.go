// The controller-runtime side of the benchmarks: its priority queue, and whole controllers. Lines on stdin control the program; ../PROTOCOL.md
// defines them.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"shared"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func main() {
	log.SetFlags(0)
	options := parseArguments(os.Args[1:])
	obey, err := prepare(options)
	if err != nil {
		log.Fatal(err)
	}
	started := event{"version": "controller-runtime " + shared.VersionOf("sigs.k8s.io/controller-runtime")}
	if err := shared.Serve(started, obey); err != nil {
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
	bench := &shared.QueueBench{New: func() shared.Queue {
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

type event = shared.Event
