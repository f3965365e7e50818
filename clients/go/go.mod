module github.com/duestream/duestream/clients/go

go 1.19
