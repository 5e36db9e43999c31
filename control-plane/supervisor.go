package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// supervisor owns all parts of one control plane. Its methods are called from
// the main goroutine only.
type supervisor struct {
	options     options
	dir         *workdir
	port        *reservedPort
	credentials *credentials
	etcd        *etcd
	client      *client

	apiserver         *child // nil while it is held down
	controllerManager *child // nil unless asked for
}

// start brings everything up. After an error the caller still calls close.
func (s *supervisor) start(ctx context.Context) error {
	var err error
	if s.dir, err = newWorkdir(); err != nil {
		return err
	}
	if s.port, err = reservePort(); err != nil {
		return err
	}
	if s.credentials, err = newCredentials(s.dir.path, s.url()); err != nil {
		return err
	}
	if s.etcd, err = startEtcd(ctx, s.dir, s.options); err != nil {
		return err
	}
	s.client = newClient(s.url(), s.credentials)
	if err := s.startAPIServer(ctx); err != nil {
		return err
	}
	return s.startControllerManager(ctx)
}

func (s *supervisor) url() string { return fmt.Sprintf("https://127.0.0.1:%d", s.port.number) }

var errRunning = errors.New("the API server is running already")

// startAPIServer returns when the API server is ready to be tested.
func (s *supervisor) startAPIServer(ctx context.Context) error {
	if s.apiserver != nil {
		return errRunning
	}
	args := apiserverArguments(s.options, s.credentials, s.etcd.url, s.port.number)
	apiserver, err := startChild("kube-apiserver", args, s.logFile("kube-apiserver"))
	if err != nil {
		return err
	}
	// The API server creates the namespace after it has reported ready.
	if err := s.await(ctx, apiserver, "/readyz", "/api/v1/namespaces/default"); err != nil {
		apiserver.kill()
		return err
	}
	s.apiserver = apiserver
	return nil
}

var errStopped = errors.New("the API server is stopped already")

// stopAPIServer reports whether the API server exited before it had to be killed.
func (s *supervisor) stopAPIServer(graceful bool) (bool, error) {
	if s.apiserver == nil {
		return false, errStopped
	}
	apiserver := s.apiserver
	s.apiserver = nil
	if graceful {
		stopped := apiserver.terminate(s.options.stopTimeout)
		if !stopped {
			fmt.Fprintf(os.Stderr, "kube-apiserver was killed: it did not stop within %v (see --stop-timeout)%s\n",
				s.options.stopTimeout, apiserver.logTail())
		}
		return stopped, nil
	}
	apiserver.kill()
	return false, nil
}

func (s *supervisor) startControllerManager(ctx context.Context) error {
	if !s.options.controllerManager {
		return nil
	}
	args := controllerManagerArguments(s.options, s.credentials)
	manager, err := startChild("kube-controller-manager", args, s.logFile("kube-controller-manager"))
	if err != nil {
		return err
	}
	s.controllerManager = manager
	// Pods are refused until a controller has created this account.
	return s.await(ctx, manager, "/api/v1/namespaces/default/serviceaccounts/default")
}

// await returns when the API server has answered each of the paths, or with an error when c, on which they depend, has
// exited or time is up.
func (s *supervisor) await(ctx context.Context, c *child, paths ...string) error {
	deadline := time.After(s.options.startTimeout)
	for len(paths) > 0 {
		err := s.client.get(ctx, paths[0])
		if err == nil {
			paths = paths[1:]
			continue
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-c.done:
			return c.endedError()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return fmt.Errorf("%s was not ready after %v (see --start-timeout): %w%s",
				c.name, s.options.startTimeout, err, c.logTail())
		}
	}
	return nil
}

func (s *supervisor) logFile(name string) string {
	if s.options.verbose {
		return ""
	}
	return s.dir.file(name + ".log")
}

// close stops and removes everything, in any state. It kills children: what they could still save is about to be
// deleted.
func (s *supervisor) close() error {
	for _, c := range []*child{s.controllerManager, s.apiserver} {
		if c != nil {
			c.kill()
		}
	}
	if s.etcd != nil {
		s.etcd.close()
	}
	if s.port != nil {
		s.port.release()
	}
	if s.dir != nil {
		return s.dir.remove()
	}
	return nil
}
