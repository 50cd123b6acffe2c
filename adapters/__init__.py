"""One folder per dialect: pure translation, no sockets; and the one session shell that joins a dialect to a transport."""
