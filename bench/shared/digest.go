package shared

import (
	"fmt"
	"hash/fnv"
)

// Checksum is independent of the order of its texts.
type Checksum uint64

// Add adds a text.
func (c *Checksum) Add(text string) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	*c += Checksum(hash.Sum64())
}

func (c Checksum) String() string {
	return fmt.Sprintf("%016x", uint64(c))
}
