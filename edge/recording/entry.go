package recording

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
)

// Entry is one step of a machine, as a log holds it, the begin of a run, or a snapshot
// of the machine.
type Entry struct {
	// Begin is set, and nothing below, where a run begins: with a new machine that
	// is told of the objects of the checkpoint.
	Begin *Begin
	// Snapshot is set, with Now and Objects, where the log says what the machine knew
	// besides the objects that there were.
	Snapshot *machine.Snapshot
	Objects  []machine.Event

	Now   time.Time
	Event machine.Event
	// Panicked: the step panicked, and the machine repaired itself.
	Panicked bool
	// Digest is that of the effects, 0 for none.
	Digest uint32
	// Attempts are what was decided.
	Attempts []Attempt
}

// Begin is the begin of a run.
type Begin struct {
	Header
	// Objects are what the machine knows already; none if the run is whole.
	Objects []machine.Event
}

// Attempt is how an attempt ended.
type Attempt struct {
	UID      types.UID
	Result   decision.Result
	Node     string
	Score    int64
	Feasible int
}

// Attempts lists what the effects say was decided.
func Attempts(effects []machine.Effect) []Attempt {
	var list []Attempt
	for _, e := range effects {
		if done, ok := e.(machine.AttemptDone); ok {
			d := done.Decision
			list = append(list, Attempt{d.UID, d.Result, d.Node, d.Score, d.NodesFeasible})
		}
	}
	return list
}

// The codes of entries. They are part of the format.
const (
	codeSet uint8 = iota + 1
	codeGone
	codePodDecodeFailed
	codeKindUnlisted
	codeKindListed
	codeRewound
	codeTick
	codeScheduleOne
	codeBindReply
	codePermitReply
	codeActivate
	codeWriteReply
	codeReadReply
	codeExtenderReply
	codeEvictReply
	codeCheckpoint
	codeSnapshot
	codePostFilterWritten
	codePermitAnswer     // a Permit reply with the attempt that it is for
	codeSnapshotUnderway // a snapshot with what is under way

	codeMask     = 0x1f
	flagEffects  = 0x20 // a digest and outcomes follow
	flagPanicked = 0x40
)

// results numbers the ways in which an attempt ends. The numbers are part of the
// format.
var results = []decision.Result{
	1: decision.ResultScheduled, 2: decision.ResultUnschedulable, 3: decision.ResultPreempting,
	4: decision.ResultGated, 5: decision.ResultWaiting, 6: decision.ResultError,
}
