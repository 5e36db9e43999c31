package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"shared"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// How long a reconciliation of a storm takes.
const stormTime = 20 * time.Millisecond

var errDrawn = errors.New("one of twenty fails")

// owners is a whole controller. Each ConfigMap owns a Secret of its name, which has the same value. In a storm there are no
// Secrets: a reconciliation takes a while, and some fail.
type owners struct {
	manager manager.Manager
	client  client.Client
	ledger  *ledger
}

func newOwners(options options) (*owners, error) {
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", options.kubeconfig)
	if err != nil {
		return nil, err
	}
	// No limit of requests, as with the others.
	config.QPS = -1
	m, err := manager.New(config, manager.Options{
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	o := &owners{manager: m, client: m.GetClient(), ledger: newLedger()}
	builder := ctrl.NewControllerManagedBy(m).
		Named("bench").
		For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.workers})
	switch options.controller {
	case "children":
		err = builder.Owns(&corev1.Secret{}).Complete(reconcile.Func(o.keepChild))
	case "storm":
		err = builder.Complete(reconcile.Func(o.takeAWhile))
	default:
		err = fmt.Errorf("there is no controller %q", options.controller)
	}
	return o, err
}

func (o *owners) obey(command, argument string) (string, event, error) {
	switch command {
	case "start":
		var wish struct{ Objects int }
		if err := shared.Parse(argument, &wish); err != nil {
			return "", nil, err
		}
		answer, err := o.start(wish.Objects)
		return "synced", answer, err
	case "until-all":
		var wish struct{ Versions string }
		if err := shared.Parse(argument, &wish); err != nil {
			return "", nil, err
		}
		versions, err := strconv.ParseUint(wish.Versions, 10, 64)
		if err != nil {
			return "", nil, err
		}
		return "reached", o.ledger.untilVersions(versions), nil
	case "digest":
		return "digest", o.ledger.digest(), nil
	}
	return "", nil, fmt.Errorf("a controller of controller-runtime has no %q", command)
}

func (o *owners) start(objects int) (event, error) {
	begin := time.Now()
	o.ledger.expect(objects)
	ended := make(chan error, 1)
	go func() { ended <- o.manager.Start(context.Background()) }()
	all := make(chan struct{})
	go func() {
		o.ledger.untilAll()
		close(all)
	}()
	select {
	case err := <-ended:
		return nil, fmt.Errorf("the manager has ended: %w", err)
	case <-all:
	}
	wall := time.Since(begin)
	first := o.ledger.beginCounts().Sub(begin)
	return event{"objects": objects, "wallSeconds": wall.Seconds(), "firstSeconds": first.Seconds()}, nil
}

func (o *owners) keepChild(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var owner corev1.ConfigMap
	if err := o.client.Get(ctx, request.NamespacedName, &owner); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	index, isOwner := o.ledger.begin(owner.Name)
	if !isOwner {
		return reconcile.Result{}, nil
	}
	err := o.bringIntoStep(ctx, &owner)
	o.ledger.end(index, &owner.ObjectMeta, err)
	return reconcile.Result{}, err
}

// bringIntoStep creates or updates the Secret of an owner.
func (o *owners) bringIntoStep(ctx context.Context, owner *corev1.ConfigMap) error {
	var child corev1.Secret
	value := owner.Data["value"]
	err := o.client.Get(ctx, client.ObjectKeyFromObject(owner), &child)
	switch {
	case apierrors.IsNotFound(err):
		child = corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: owner.Namespace, Labels: owner.Labels},
			Data:       map[string][]byte{"value": []byte(value)},
		}
		if err := ctrl.SetControllerReference(owner, &child, o.client.Scheme()); err != nil {
			return err
		}
		return o.client.Create(ctx, &child)
	case err != nil:
		return err
	case string(child.Data["value"]) == value:
		return nil
	}
	child.Data = map[string][]byte{"value": []byte(value)}
	return o.client.Update(ctx, &child)
}

func (o *owners) takeAWhile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var owner corev1.ConfigMap
	if err := o.client.Get(ctx, request.NamespacedName, &owner); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	index, isOwner := o.ledger.begin(owner.Name)
	if !isOwner {
		return reconcile.Result{}, nil
	}
	time.Sleep(stormTime)
	var err error
	if rand.IntN(20) == 0 {
		err = errDrawn
	}
	o.ledger.end(index, &owner.ObjectMeta, err)
	return reconcile.Result{}, err
}
