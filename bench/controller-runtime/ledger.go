package main

import (
	"fmt"
	"shared"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const namespaces = 20

// ledger says what was reconciled: the version of each owner, and whether two workers had the same one at a time.
type ledger struct {
	lock    sync.Mutex
	changed *sync.Cond
	owners  []owner
	// How many owners were reconciled.
	reconciled int
	// The sum of the versions that were reconciled last.
	versions uint64
	first    time.Time
	// Counts and delays start once all owners were reconciled.
	counts            bool
	updates, failures int
	// How often a worker began with an owner that another one had.
	overlaps int
	delays   shared.Delays
}

// owner is one ConfigMap, by its number.
type owner struct {
	// The last version that was reconciled with success.
	version uint64
	isBusy  bool
}

func newLedger() *ledger {
	l := &ledger{}
	l.changed = sync.NewCond(&l.lock)
	return l
}

func (l *ledger) expect(owners int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.owners = make([]owner, owners)
}

// begin says that a worker has the owner of this name. The last result is false for an object that is no owner.
func (l *ledger) begin(name string) (index int, isOwner bool) {
	number, isNumbered := strings.CutPrefix(name, "owner-")
	index, err := strconv.Atoi(number)
	l.lock.Lock()
	defer l.lock.Unlock()
	if !isNumbered || err != nil || index < 0 || index >= len(l.owners) {
		return 0, false
	}
	if l.owners[index].isBusy {
		l.overlaps++
	}
	l.owners[index].isBusy = true
	if l.first.IsZero() {
		l.first = time.Now()
	}
	return index, true
}

// end says that the owner was reconciled as it is in this metadata, if there is no error.
func (l *ledger) end(index int, metadata *metav1.ObjectMeta, err error) {
	version, _ := strconv.ParseUint(metadata.ResourceVersion, 10, 64)
	l.lock.Lock()
	defer l.lock.Unlock()
	owner := &l.owners[index]
	owner.isBusy = false
	if err != nil {
		l.failures++
		return
	}
	if version <= owner.version {
		return
	}
	if owner.version == 0 {
		l.reconciled++
	}
	l.versions += version - owner.version
	owner.version = version
	if l.counts {
		l.updates++
		l.delays.AddSince(metadata.Annotations[shared.SentAt])
	}
	l.changed.Broadcast()
}

// untilAll waits until each owner was reconciled.
func (l *ledger) untilAll() {
	l.lock.Lock()
	defer l.lock.Unlock()
	for l.reconciled < len(l.owners) {
		l.changed.Wait()
	}
}

// beginCounts returns when the first reconciliation began.
func (l *ledger) beginCounts() time.Time {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.counts = true
	return l.first
}

// untilVersions waits until the versions that were reconciled have this sum.
func (l *ledger) untilVersions(versions uint64) event {
	l.lock.Lock()
	defer l.lock.Unlock()
	for l.versions < versions {
		l.changed.Wait()
	}
	return l.delays.AddTo(event{"updates": l.updates, "failures": l.failures, "overlaps": l.overlaps})
}

// digest returns the checksum of the versions that were reconciled.
func (l *ledger) digest() event {
	l.lock.Lock()
	defer l.lock.Unlock()
	var checksum shared.Checksum
	for index, owner := range l.owners {
		checksum.Add(fmt.Sprintf("owners-%d/owner-%d\n%d", index%namespaces, index, owner.version))
	}
	return event{"objects": l.reconciled, "checksum": checksum.String()}
}
