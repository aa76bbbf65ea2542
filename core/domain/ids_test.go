package domain

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// However names come and go: who is held has one id of its own, and ids are dense.
func TestIds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var numbers ids
		holders, most := map[string]int{}, 0
		byName := map[string]int32{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "name"))
			if holders[name] > 0 && rapid.Bool().Draw(t, "release") {
				numbers.release(byName[name])
				if holders[name]--; holders[name] == 0 {
					delete(holders, name)
				}
			} else {
				hold := func() (int32, bool) { return numbers.hold(name) }
				if rapid.Bool().Draw(t, "bytes") {
					hold = func() (int32, bool) { return numbers.holdBytes([]byte(name)) }
				}
				id, known := hold()
				if known != (holders[name] > 0) || known && id != byName[name] {
					t.Fatalf("hold of %s: id %d (known: %v), had %d", name, id, known, byName[name])
				}
				byName[name] = id
				holders[name]++
				most = max(most, len(holders))
			}
			seen := map[int32]bool{}
			for name := range holders {
				id := byName[name]
				if seen[id] || int(id) >= numbers.len() || numbers.list[id].name != name {
					t.Fatalf("%s has id %d, which is that of %q", name, id, numbers.list[id].name)
				}
				seen[id] = true
			}
			if numbers.held() != len(holders) || numbers.len() != most {
				t.Fatalf("%d held, room for %d; want %d and %d", numbers.held(), numbers.len(), len(holders), most)
			}
		}
	})
}

// An id that is known is held and released without an allocation.
func TestHoldingDoesNotAllocate(t *testing.T) {
	var numbers ids
	name := []byte("zone-a")
	numbers.holdBytes(name)
	if n := testing.AllocsPerRun(100, func() {
		id, _ := numbers.holdBytes(name)
		numbers.release(id)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
