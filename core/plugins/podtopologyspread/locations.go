package podtopologyspread

import (
	"encoding/binary"

	"github.com/berth-scheduler/berth/core/domain"
)

// locations are where nodes are, each once, held by the rows there.
type locations struct {
	ids domain.Ids[location]
	buf []byte // room for join
}

// location is where a node is in all topologies. Nodes with the same labels share
// one. A location that lacks a label that is needed ends with the first such.
type location struct {
	domains  []domainID // by constraint
	complete bool       // no label is missing
}

// of returns the location of a cell that has one. It is valid until the next join.
func (p *locations) of(cell int64) *location { return p.ids.At(locationOf(cell)) }

// join finds or makes the location for one more row.
func (p *locations) join(sites []domainID, whole bool) (id int32, known bool) {
	p.buf = p.buf[:0]
	for _, s := range sites {
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(s))
	}
	if id, known = p.ids.HoldBytes(p.buf); !known {
		*p.ids.At(id) = location{domains: append([]domainID(nil), sites...), complete: whole}
	}
	return id, known
}
