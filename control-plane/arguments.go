package main

import (
	"maps"
	"slices"
	"strconv"
)

// serviceAccountIssuer is the name that the service-account tokens carry.
const serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"

// apiserverArguments are kube-apiserver's flags: enough for a real API server,
// less what serves nodes and clusters of several servers.
func apiserverArguments(o options, c *credentials, etcdURL string, port int) []string {
	flags := map[string]string{
		"etcd-servers":        etcdURL,
		"bind-address":        "127.0.0.1",
		"advertise-address":   "127.0.0.1",
		"secure-port":         strconv.Itoa(port),
		"permit-port-sharing": "true", // see reservedPort
		// No client looks up an API server by the endpoints of the service "kubernetes", and loopback addresses are not
		// allowed there.
		"endpoint-reconciler-type": "none",
		"service-cluster-ip-range": "10.96.0.0/16",

		"tls-cert-file":                    c.servingFile,
		"tls-private-key-file":             c.servingKey,
		"client-ca-file":                   c.caFile,
		"token-auth-file":                  c.tokenFile,
		"authorization-mode":               "RBAC",
		"service-account-issuer":           serviceAccountIssuer,
		"service-account-key-file":         c.serviceAccountFile,
		"service-account-signing-key-file": c.serviceAccountKey,
		"allow-privileged":                 "true",

		"etcd-compaction-interval": o.compactionInterval.String(),
		"watch-cache":              strconv.FormatBool(o.watchCache),
		"feature-gates":            o.featureGates.String(),

		// Priority and fairness shares the sum of these out. Tests do not test how few requests the server accepts.
		"max-requests-inflight":          "3000",
		"max-mutating-requests-inflight": "1000",

		// A graceful stop ends open watches properly, which Kubernetes does only
		// when given a grace period, and then takes a second instead of a minute.
		"shutdown-delay-duration":                 "0s",
		"shutdown-send-retry-after":               "true",
		"shutdown-watch-termination-grace-period": "1s",
	}
	if o.defaultWatchCacheSize > 0 {
		flags["default-watch-cache-size"] = strconv.Itoa(o.defaultWatchCacheSize)
	}
	if !o.controllerManager {
		// Without controllers no namespace gets its service account, and this
		// plugin would refuse every pod.
		flags["disable-admission-plugins"] = "ServiceAccount"
	}
	maps.Copy(flags, o.apiserverArgs)
	return arguments(flags)
}

// withoutNodes switches off the controllers that would act on tests' imaginary
// nodes, or on pods that claim to run on them, because no kubelet reports.
const withoutNodes = "*" +
	",-node-ipam-controller" +
	",-node-lifecycle-controller" +
	",-taint-eviction-controller" +
	",-device-taint-eviction-controller" +
	",-pod-garbage-collector-controller" +
	",-persistentvolume-attach-detach-controller" +
	",-persistentvolume-expander-controller" +
	",-ttl-controller"

func controllerManagerArguments(o options, c *credentials) []string {
	return arguments(map[string]string{
		"kubeconfig":                       c.kubeconfigFile,
		"secure-port":                      "0",
		"leader-elect":                     "false",
		"controllers":                      withoutNodes,
		"root-ca-file":                     c.caFile,
		"cluster-signing-cert-file":        c.caFile,
		"cluster-signing-key-file":         c.caKeyFile,
		"service-account-private-key-file": c.serviceAccountKey,
		"feature-gates":                    o.featureGates.String(),
		"kube-api-qps":                     "1000",
		"kube-api-burst":                   "2000",
	})
}

func arguments(flags map[string]string) []string {
	list := make([]string, 0, len(flags))
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		list = append(list, "--"+name+"="+flags[name])
	}
	return list
}
