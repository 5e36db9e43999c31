package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// etcd is a single etcd member inside this process. It outlives restarts of the API server, so it is not part of that
// process.
type etcd struct {
	server *embed.Etcd
	url    string
}

func startEtcd(ctx context.Context, dir *workdir, o options) (*etcd, error) {
	// Sockets in our private directory: no port to find or to guard.
	client := url.URL{Scheme: "unix", Path: dir.file("etcd.sock")}
	peer := url.URL{Scheme: "unix", Path: dir.file("etcd-peer.sock")}
	// etcd insists on advertising a host and port. No client uses them.
	nowhere := url.URL{Scheme: "http", Host: "127.0.0.1:0"}

	config := embed.NewConfig()
	config.Dir = dir.file("etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{nowhere}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{nowhere}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogOutputs = []string{dir.file("etcd.log")}
	if o.verbose {
		config.LogOutputs = []string{"stderr"}
	}
	config.LogLevel = "warn"
	// The embedded default of zero would log every request as a slow one.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	// As kubeadm sets it: it lets bookmarks of quiet resources move on.
	config.WatchProgressNotifyInterval = 5 * time.Second
	// The data need not survive a crash of the machine, only of the API server.
	config.UnsafeNoFsync = true
	// The only member waits for its own election, so keep that short.
	config.TickMs, config.ElectionMs = 20, 200
	// Benchmarks fill it; large objects soon reach the default of 2 GiB.
	config.QuotaBackendBytes = 8 << 30
	// Segments are allocated in full, at the default two of 64 MB at the start.
	wal.SegmentSizeBytes = 8 << 20

	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &etcd{server: server, url: client.String()}, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(o.startTimeout):
		err = fmt.Errorf("not ready after %v (see --start-timeout)", o.startTimeout)
	}
	server.Close()
	return nil, fmt.Errorf("start etcd: %w", err)
}

// revision is the current revision of the store, the number that Kubernetes
// calls resourceVersion.
func (e *etcd) revision() int64 { return e.server.Server.KV().Rev() }

// compact discards all history before the current revision. The API server's watch cache is not affected.
func (e *etcd) compact(ctx context.Context) (int64, error) {
	revision := e.revision()
	request := &pb.CompactionRequest{Revision: revision, Physical: true}
	_, err := e.server.Server.Compact(ctx, request)
	// Compacted already, by the API server or by an earlier command: that is what was asked for.
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		return 0, fmt.Errorf("compact etcd at revision %d: %w", revision, err)
	}
	return revision, nil
}

// close stops etcd, but does not wait for it forever: the data are thrown away anyway.
func (e *etcd) close() {
	closed := make(chan struct{})
	go func() {
		e.server.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(3 * time.Second):
	}
}
