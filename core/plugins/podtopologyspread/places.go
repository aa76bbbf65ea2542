package podtopologyspread

import (
	"encoding/binary"

	"github.com/berth-scheduler/berth/core/domain"
)

// places are where nodes are, each once, held by the rows there.
type places struct {
	ids domain.Ids[place]
	buf []byte // room for join
}

// place is where a node is in all topologies. Nodes with the same labels share
// one. A place that lacks a label that is needed ends with the first such.
type place struct {
	sites []site // by constraint
	whole bool   // no label is missing
}

// of returns the place of a cell that has one. It is valid until the next join.
func (p *places) of(cell int64) *place { return p.ids.At(placeOf(cell)) }

// join finds or makes the place for one more row.
func (p *places) join(sites []site, whole bool) (id int32, known bool) {
	p.buf = p.buf[:0]
	for _, s := range sites {
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(s))
	}
	if id, known = p.ids.HoldBytes(p.buf); !known {
		*p.ids.At(id) = place{sites: append([]site(nil), sites...), whole: whole}
	}
	return id, known
}
