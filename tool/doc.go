// Package tool has the commands of berth, the tool for people. Its Go API is not
// stable: it may change with any release.
package tool
