// Package ranking keeps an index of the nodes for one class of pods: which rows
// of the table are feasible, why the others are not, and which feasible row has
// the highest total. It knows nothing of plugins. Whoever asks the plugins tells
// the index what they answered for a row (Update) and reads the best row off it
// (Pick).
//
// # One decision
//
// A total is the row's own score plus a bonus. The score is final: other nodes do
// not change it. The bonus is not: kube-scheduler normalizes a raw score by the
// extremes over all feasible nodes, and counts pods by topology domain. So the
// index keeps rows with equal values (raw scores, domains) in one bucket. Whatever
// the bonus of a bucket is, all its rows have it, and their order is that of their
// scores. A bucket counts its rows by score; scores are small integers.
//
// Say that there are six rows. The value is the zone, filter 2 is NodeResourcesFit:
//
//	row  answers                row state         index
//	0    zone a, score 71       bucket 0, 71      bucket 0 (zone a)   71: 2 rows  <- top
//	1    zone a, score 71       bucket 0, 71                          40: 1 row
//	2    zone b, score 90       bucket 1, 90      bucket 1 (zone b)   90: 1 row   <- top
//	3    filter 2 rejects it    cause 0           cause 0 (filter 2): 2 rows
//	4    zone a, score 40       bucket 0, 40
//	5    filter 2 rejects it    cause 0           feasible: 4 rows
//
// To decide, the caller gives each bucket its bonus: zone a 100, zone b 50 (and may
// rule a bucket out, as a spread constraint does with a zone). Pick compares two
// numbers, 71+100 and 90+50. It finds 171 and two ties, and draws row 0 or row 1.
//
// The pod is placed on row 1. This row alone is asked about again; it has score 66
// now. Update takes one from the count of 71 and adds one to the count of 66. The
// next Pick finds 171 and row 0. What a decision costs depends on the number of
// buckets and of changed rows, not on the number of rows.
//
// # What is counted when
//
// All rows begin closed (Begin). Those that stay so are rejected for reasons that the
// caller knows, and cost nothing. The states of the others are written at first: by Update
// and Add, or by the caller, who asks for the state of a bucket (Bucket, States). Count then
// finds the highest score of each bucket, and how many rows have it, in one walk: most
// indexes are asked once. After a later Update it counts the rows of each bucket by score,
// and from there on Update keeps all counts as it writes.
//
// # Where there are no buckets
//
// Values may differ on nearly every row. The index then gives up buckets
// (Bucketed is false) and keeps the score and the values of each row; the caller scans the rows
// and chooses among the best with draw.Row.
package ranking
