package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"k8s.io/component-base/version"
)

// versions describes what the binary was built from.
type versions struct {
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Go         string `json:"go"`
	// Reported is what /version will say. It comes from the linker's flags.
	Reported string `json:"reported"`
}

func builtFrom() (versions, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions{}, fmt.Errorf("the binary carries no build information; build it with Go modules")
	}
	v := versions{Go: info.GoVersion, Reported: version.Get().GitVersion}
	for _, module := range info.Deps {
		switch module.Path {
		case "k8s.io/kubernetes":
			v.Kubernetes = module.Version
		case "go.etcd.io/etcd/server/v3":
			v.Etcd = module.Version
		}
	}
	return v, nil
}

// checkVersion refuses a binary whose /version would be wrong. Clients decide by that version which requests a server
// supports, so a wrong one makes tests pass or fail for the wrong reason.
func checkVersion() error {
	v, err := builtFrom()
	if err != nil {
		return err
	}
	if v.Kubernetes != v.Reported {
		return fmt.Errorf("built from Kubernetes %s but would report %q; "+
			"set the version with the linker flags of README.md", v.Kubernetes, v.Reported)
	}
	return nil
}

func printVersion() int {
	v, err := builtFrom()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(v)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "control-plane:", err)
		return 1
	}
	return 0
}
