package interpodaffinity

import (
	"encoding/binary"

	"github.com/berth-scheduler/berth/core/domain"
)

// topology is the nodes by one label: the domains, which are its values, held
// by the rows in them, and what speaks for or against each.
type topology struct {
	key     string
	domains domain.Ids[sums]
}

// sums is what there is of each kind.
type sums [kinds]int64

// domainID says where a node is in one topology: the id of a domain, or one of the
// values below.
type domainID = int32

const (
	missing domainID = -1 // the node lacks the label
	own     domainID = -2 // the node is a domain of its own, counted with its row
)

// locations are where nodes are, in all topologies, each once, held by the rows
// there.
type locations struct {
	ids domain.Ids[location]
	buf []byte // room for join
}

type location struct {
	domains []domainID // by topology
}

// join finds or makes the location for one more row.
func (p *locations) join(sites []domainID) int32 {
	p.buf = p.buf[:0]
	for _, s := range sites {
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(s))
	}
	id, known := p.ids.HoldBytes(p.buf)
	if !known {
		p.ids.At(id).domains = append([]domainID(nil), sites...)
	}
	return id
}
