// Package volumerestrictions keeps pods off nodes where another pod has a disk
// that the two may not share, and keeps a pod waiting whose claim only one pod
// at a time may use (ReadWriteOncePod) while another uses it.
package volumerestrictions
