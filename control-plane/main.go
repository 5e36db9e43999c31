// Command control-plane runs a real Kubernetes control plane for tests: etcd, kube-apiserver and, on request,
// kube-controller-manager, all from this one binary. Tests need the real thing because the server's watch cache and
// etcd keep (or break) the promises of list and watch, and no imitation reproduces that.
//
// The binary is built from the published modules of Kubernetes and etcd that
// go.mod pins, so a test machine needs a Go toolchain and nothing else: no
// container runtime, no download of executables, no privileges.
package main

import (
	"fmt"
	"os"

	// CronJobs name time zones, and a test machine may have no zone files.
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	// The commands of Kubernetes register the same: the JSON log format and the metrics of their clients and of their
	// version.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

const usage = `usage: control-plane <command> [flags]

  run                      start a control plane and keep it until stdin closes
                           (control-plane run --help lists the flags)
  version                  print what this binary was built from
  kube-apiserver           the command of Kubernetes, unchanged
  kube-controller-manager  the command of Kubernetes, unchanged
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	switch name {
	case "run":
		os.Exit(run(args))
	case "version":
		os.Exit(printVersion())
	case "kube-apiserver":
		os.Exit(component(apiserver.NewAPIServerCommand(), args))
	case "kube-controller-manager":
		os.Exit(component(controllermanager.NewControllerManagerCommand(), args))
	case "help", "-h", "--help":
		fmt.Print(usage)
	default:
		fmt.Fprintf(os.Stderr, "control-plane: unknown command %q\n\n%s", name, usage)
		os.Exit(2)
	}
}

// component runs one of Kubernetes' own commands in this process.
func component(command *cobra.Command, args []string) int {
	command.SetArgs(args)
	return cli.Run(command)
}
