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

// site says where a node is in one topology: the id of a domain, or one of the
// values below.
type site = int32

const (
	missing site = -1 // the node lacks the label
	own     site = -2 // the node is a domain of its own, counted with its row
)

// places are where nodes are, in all topologies, each once, held by the rows
// there.
type places struct {
	ids domain.Ids[place]
	buf []byte // room for join
}

type place struct {
	sites []site // by topology
}

// join finds or makes the place for one more row.
func (p *places) join(sites []site) int32 {
	p.buf = p.buf[:0]
	for _, s := range sites {
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(s))
	}
	id, known := p.ids.HoldBytes(p.buf)
	if !known {
		p.ids.At(id).sites = append([]site(nil), sites...)
	}
	return id
}
