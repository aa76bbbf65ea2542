// Package untrusted reads files, streams and answers whose writer is not trusted. Whatever
// is read has a bound on its size, and a file that a program reads by itself has one on
// its time, too. A named pipe, a device or a socket in the place of such a file is an
// error, and opening it does not block.
package untrusted
