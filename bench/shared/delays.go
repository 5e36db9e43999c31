package shared

import (
	"slices"
	"strconv"
	"time"
)

// SentAt is the annotation with the time just before the change was sent, in microseconds of Unix time.
const SentAt = "bench/sent-at"

// The number of delays kept for the 99th percentile. It is bounded because the benchmark measures memory too.
const delaysKept = 10_000

// Delays between a change and its notification.
type Delays struct {
	count         int
	sum, greatest time.Duration
	first         []time.Duration
}

// AddSince adds the delay from the time in the annotation until now, if there is one.
func (d *Delays) AddSince(sentAt string) {
	micros, err := strconv.ParseInt(sentAt, 10, 64)
	if err != nil {
		return
	}
	delay := time.Since(time.UnixMicro(micros))
	d.count++
	d.sum += delay
	d.greatest = max(d.greatest, delay)
	if len(d.first) < delaysKept {
		d.first = append(d.first, delay)
	}
}

// AddAll adds the delays of another handler.
func (d *Delays) AddAll(other Delays) {
	d.count += other.count
	d.sum += other.sum
	d.greatest = max(d.greatest, other.greatest)
	d.first = append(d.first, other.first...)
}

// Clone returns a copy that shares nothing.
func (d Delays) Clone() Delays {
	d.first = slices.Clone(d.first)
	return d
}

// percentile99 returns the 99th percentile of the delays that were kept.
func (d Delays) percentile99() time.Duration {
	if len(d.first) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d.first))
	return sorted[(len(sorted)-1)*99/100]
}

// AddTo adds the fields of the protocol.
func (d Delays) AddTo(answer Event) Event {
	answer["delayMeanSeconds"] = d.sum.Seconds() / float64(max(d.count, 1))
	answer["delayP99Seconds"] = d.percentile99().Seconds()
	answer["delayMaxSeconds"] = d.greatest.Seconds()
	return answer
}
