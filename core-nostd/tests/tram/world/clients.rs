//! The clients of a world.

use std::collections::BTreeSet;

use super::*;

impl World {
    pub fn start_client(&mut self, number: ClientNumber) {
        let replicas: Vec<ReplicaId> = self.replicas.keys().copied().collect();
        self.start_client_towards(number, &replicas);
    }

    /// Starts a client that connects only to these replicas. The others keep the view of its
    /// previous incarnation.
    pub fn start_client_towards(&mut self, number: ClientNumber, replicas: &[ReplicaId]) {
        let links = ClientLinks::of(self.overlay);
        let incarnation = self.client_incarnations.entry(number).or_insert(0);
        *incarnation += 1;
        let incarnation = *incarnation;
        let window = self.settings.window as usize;
        let state = (
            Leased::new(links.len()),
            Leased::new(self.overlay.len()),
            Leased::new(window),
            Leased::new(window * self.settings.payload_max as usize),
        );
        let process = self.network.borrow_mut().add(64);
        let log = self.network.borrow().log(process);
        let memory = Lending::new(log, links.len(), &self.network);
        let end = NetworkEnd { network: Rc::clone(&self.network), process };
        let client = Client::open(
            self.overlay,
            ClientOptions { number, incarnation },
            end.capabilities(),
            state.0.lend(),
            state.1.lend(),
            state.2.lend(),
            state.3.lend(),
        )
        .expect("a client of the overlay");
        let running = RunningClient { client, memory, end, incarnation, _state: state };
        self.clients.insert(number, running);
        for id in replicas {
            self.connect_client(number, *id);
        }
    }

    pub fn connect_client(&mut self, number: ClientNumber, id: ReplicaId) {
        let shape = Shape::of(self.overlay, id.group);
        let sizes = [shape.client_row_bytes(), shape.reply_row_bytes(self.settings.window)];
        let link_at_client = ClientLinks::of(self.overlay).find(id).expect("a link");
        let link_at_replica = ReplicaLinks::of(self.overlay, id.group)
            .find(LinkRole::Client(number))
            .expect("a link");
        let client = self.clients.get_mut(&number).expect("it runs");
        let replica = self.replicas.get_mut(&id).expect("it runs");
        let processes = [client.end.process, replica.end.process];
        let (view, rows) = self.network.borrow_mut().connect(processes, sizes);
        let now = Time(self.now);
        client.memory.links[link_at_client.index()] = Some(Rc::clone(&rows[0]));
        let to_replica =
            Attachment { view, peer: Rank(1), incarnation: u32::from(replica.incarnation) };
        client.client.attach(now, link_at_client, to_replica, &client.memory).expect("it fits");
        replica.memory.links[link_at_replica.index()] = Some(Rc::clone(&rows[1]));
        let to_client = Attachment { view, peer: Rank(0), incarnation: client.incarnation };
        replica.replica.attach(now, link_at_replica, to_client, &replica.memory).expect("it fits");
    }

    pub fn crash_client(&mut self, number: ClientNumber) {
        if let Some(running) = self.clients.remove(&number) {
            self.network.borrow_mut().crash(running.end.process);
        }
    }

    /// Stops a client without informing anyone.
    pub fn silence_client(&mut self, number: ClientNumber) {
        self.clients.remove(&number);
    }

    pub fn multicast(
        &mut self,
        number: ClientNumber,
        destinations: Destinations,
        length: usize,
    ) -> Result<MessageId, SendError> {
        self.multicast_for(number, destinations, length, Answers::OneOfEach)
    }

    pub fn multicast_for(
        &mut self,
        number: ClientNumber,
        destinations: Destinations,
        length: usize,
        answers: Answers,
    ) -> Result<MessageId, SendError> {
        let Some(running) = self.clients.get_mut(&number) else { return Err(SendError::Closed) };
        let seed = self.random.next();
        let payload: Vec<u8> = (0..length).map(|at| (seed >> (at % 8 * 8)) as u8).collect();
        let id = running.client.multicast(destinations, &payload, answers)?;
        self.sent.insert(id, ClientMessage { destinations, payload, answered: false });
        Ok(id)
    }

    /// Returns the replicas to which a client has writes in flight.
    pub fn written_to(&self, number: ClientNumber) -> BTreeSet<ReplicaId> {
        let writes = self.network.borrow().writes_to(self.clients[&number].end.process);
        let is_one = |id: &ReplicaId| self.process_of(*id).is_some_and(|of| writes.contains(&of));
        self.ids().into_iter().filter(is_one).collect()
    }

    pub fn step_client(&mut self, number: ClientNumber) {
        let Some(running) = self.clients.get_mut(&number) else { return };
        running.memory.hide(self.settings.hides, &mut self.random);
        let stepped = running.client.step(Time(self.now), &mut running.end, &running.memory);
        running.memory.show();
        match stepped {
            Ok(did) => self.clients_lists += did.lists,
            Err(halt) => self.complaints.push(format!("client {number}: {halt}")),
        }
        loop {
            let has_answers = running.client.has_answers();
            let answered = running.client.poll();
            if answered.is_some() != has_answers {
                self.complaints.push(format!("client {number}: has answers: {has_answers}"));
            }
            let Some(answered) = answered else { break };
            let replied = self.replied.entry(answered.id).or_default();
            running.client.replies(&answered, &running.memory, |replica, answer, leads| {
                replied.push((replica, leads));
                if answer != answered.id.number as u8 {
                    self.complaints.push(format!("{replica}: another's answer {answer}"));
                }
                let limit = self.settings.answer_max as usize;
                let mut bytes = vec![0; limit];
                let (client, memory) = (&running.client, &running.memory);
                let length = client.answer(&answered, replica, memory, &mut bytes);
                let mut expected = expected_answer(answered.id, replica.group);
                let length_expected = if limit == 0 { 0 } else { expected.len() as u64 };
                expected.resize(limit, 0);
                if (length, bytes) != (Some(length_expected), expected) {
                    self.complaints.push(format!("{replica}: another's bytes, {length:?}"));
                }
                self.answers += u32::from(length_expected > 0);
            });
            if let Some(sent) = self.sent.get_mut(&answered.id) {
                sent.answered = true;
                for group in sent.destinations.iter() {
                    let of_it = |((other, _), id): (&(GroupId, u64), &MessageId)| {
                        *other == group && *id == answered.id
                    };
                    if !self.ever.iter().any(of_it) {
                        let id = answered.id;
                        self.complaints.push(format!("{id} is answered, and not by {group}"));
                    }
                }
            }
        }
        for (index, place) in running.memory.links.iter_mut().enumerate() {
            let link = LinkId(index as u16);
            if running.client.stage(link) == Stage::Lost {
                running.client.detach(link);
                *place = None;
            }
        }
    }

    pub fn process_of_client(&self, number: ClientNumber) -> usize {
        self.clients[&number].end.process
    }

    /// Returns whether no group keeps a registration for a client.
    pub fn has_left(&self, number: ClientNumber) -> bool {
        let running = &self.clients[&number];
        running.client.has_left(&running.memory).expect("it fits")
    }

    /// Lets a client announce that it leaves.
    pub fn leave(&mut self, number: ClientNumber) {
        if let Some(running) = self.clients.get_mut(&number) {
            running.client.leave();
        }
    }
}
