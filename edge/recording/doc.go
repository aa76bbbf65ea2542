// Package recording keeps a log of all that a scheduler's machine is told: each
// event with its time, and a digest of what the machine asked for. Whoever reads
// the log back can drive a machine through the same steps (sim/replay).
//
// edge/recording/format.md states the format. A log is a directory of segments
// (segment.go). A segment is a header and frames with checksums (frame.go), which
// hold one compressed stream of entries (encode.go, decode.go). API objects are
// in it as protobuf, without what no decision depends on (object.go), and with
// their names replaced where that is asked for (redact.go).
//
// A Recorder takes in steps on the loop's goroutine, and encodes them on its own
// (recorder.go, log.go). A third goroutine works on the disk (disk.go), which may hang.
// Nobody waits for it: where the disk or the processor is too slow the log gets a gap,
// in which steps are followed and not written.
package recording
