package headroom

import "github.com/berth-scheduler/berth/core/table"

// AddRange adds the weighted scores of the rows from first on to their sums, one row a
// sum. Like Add, it leaves out rows that may not fit: it writes their indexes to left and
// returns their number. It leaves out all rows if the plugins count the pod's requests
// differently.
func AddRange[S ~int32](p *Pass, t *table.Table, first table.Row, sums []S, left []int32) int {
	if p.apart() || p.fit != p.least || p.least != p.even {
		return leaveAll(left)
	}
	rows := t.All()[first:][:len(sums)]
	return addWhole(p, t, rows, sums, left, addPercents(p, t.Percents()[first:][:len(sums)], sums, left))
}

// addPercents is the loop of AddRange over consecutive rows. It leaves out rows that may
// not fit, and marks rows whose distance is next to a whole number by the complement of
// their index in left. All plugins count the same requests, which halves the operations a
// row.
//
// What is left with the pod is cut off to a unit: with 1,250 of 4,000 millicores left,
// and a pod of 250, it is 25.0125 percent, half a millicore of which is no more than 25.
// Floats make that wrong by less than 6e-14 percent. As it is 0.5/MostInverted percent
// away from any integer, which is 1.1e-13 or more, the percents are right. A row on which
// no unit is left, be it full or not, is left out.
//
// In the same units the difference between CPU and memory is twice their distance, which
// is what counts for Balanced, in units of 2^-32. It is wrong by three units at most.
func addPercents[S ~int32](p *Pass, column []table.Percents, sums []S, left []int32) (n int) {
	cpu, memory := p.fit.CPU*(100*table.PercentUnits), p.fit.Memory*(100*table.PercentUnits)
	leastWeight, evenWeight := p.leastWeight, p.evenWeight
	sums, left = sums[:len(column)], left[:len(column)]
	for i := range column {
		h := &column[i]
		cpuLeft, memoryLeft := int64(h.CPU.Left-cpu*h.CPU.Inverse), int64(h.Memory.Left-memory*h.Memory.Inverse)
		if cpuLeft < 1 || memoryLeft < 1 {
			left[n] = int32(i)
			n++
			continue
		}
		distance := cpuLeft - memoryLeft + h.Apart
		sign := distance >> 63
		distance = distance ^ sign - sign
		if nearWhole(distance) {
			left[n] = ^int32(i)
			n++
			continue
		}
		percent := cpuLeft>>table.PercentBits + memoryLeft>>table.PercentBits
		sums[i] += S(leastWeight*(percent>>1) + evenWeight*((h.Uneven-distance)>>(unitBits+1)))
	}
	return n
}
