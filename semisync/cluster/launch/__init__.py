"""`semisync launch`: starts the processes of a job, on many machines, and ends them with it.

Each process of the job has a launcher. Places are named `ps-0`, `worker-0`, `chief-0`.

A launcher
1. holds a port that the kernel picked, and registers for a place with its address (`member`,
   `joining`). The chief's record also has the digest of the files that it hands out, and their
   URL (`shipment`);
2. waits until the leader has published a generation with this launcher in it, fetches the files of
   that generation into a folder of its own (`workplace`), and tells the leader that it is ready;
3. starts the command there, with the addresses of all, when the leader says that all start
   (`running`, `child`, `guard`);
4. starts it again within limits when it fails, and starts over when a new generation comes;
5. writes down how it ended for good, and leaves; a parameter server's waits for the job's end.

The leader, a launcher like the others (`director`),
1. publishes the first generation when every parameter server and the chief are there, and the
   workers, or LATE seconds later without the late ones;
2. publishes that its commands start once all in it are ready. DEADLINE seconds later it starts them
   without the workers that are not, by name, or ends the job and names the others;
3. adds workers that come later, which changes nothing for the others: where a worker was absent
   when a process started, that process knows an address of its own launcher, which passes
   connections on to the worker wherever it is now (`forward`);
4. publishes the next generation when a parameter server has lost its state, or the chief's launcher
   has come again with other files;
5. publishes that the training is over once the chief has ended well: no worker is started or
   started again from then on, and those that run have LINGER seconds to end;
6. publishes the job's end.

ZooKeeper is needed to begin, to join and to end; while it is away, training goes on.
"""
