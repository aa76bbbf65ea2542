package domain

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// However names come and go: who is held has one id of its own and what was
// put there, and ids are dense.
func TestIds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ids Ids[string]
		holders, most := map[string]int{}, 0
		byName := map[string]int32{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "name"))
			if holders[name] > 0 && rapid.Bool().Draw(t, "release") {
				was, last := ids.Release(byName[name])
				if holders[name]--; last != (holders[name] == 0) || last && was != "of "+name {
					t.Fatalf("release of %s: %q, last %v with %d holders left", name, was, last, holders[name])
				}
				if last {
					delete(holders, name)
				}
			} else {
				hold := func() (int32, bool) { return ids.Hold(name) }
				if rapid.Bool().Draw(t, "bytes") {
					hold = func() (int32, bool) { return ids.HoldBytes([]byte(name)) }
				}
				id, known := hold()
				if known != (holders[name] > 0) || known && id != byName[name] || !known && *ids.At(id) != "" {
					t.Fatalf("hold of %s: id %d (known: %v) with %q, had %d", name, id, known, *ids.At(id), byName[name])
				}
				*ids.At(id), byName[name] = "of "+name, id
				holders[name]++
				most = max(most, len(holders))
			}
			seen := map[int32]bool{}
			for name := range holders {
				id := byName[name]
				if seen[id] || int(id) >= ids.Len() || ids.Name(id) != name || *ids.At(id) != "of "+name {
					t.Fatalf("%s has id %d: %q with %q", name, id, ids.Name(id), *ids.At(id))
				}
				seen[id] = true
			}
			if ids.Held() != len(holders) || ids.Len() != most {
				t.Fatalf("%d held, room for %d; want %d and %d", ids.Held(), ids.Len(), len(holders), most)
			}
		}
	})
}

// An id that is known is held and released without an allocation.
func TestHoldingDoesNotAllocate(t *testing.T) {
	var ids Ids[int]
	name := []byte("zone-a")
	ids.HoldBytes(name)
	if n := testing.AllocsPerRun(100, func() {
		id, _ := ids.HoldBytes(name)
		ids.Release(id)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
