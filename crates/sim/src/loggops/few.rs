//! A short list that is stored inline in its owner.

/// A list whose first `N` elements are stored inline. Only longer lists allocate. The owner moves the elements of a list that
/// is too long into an `A`; the list is then empty and marked as away.
#[derive(Debug)]
#[repr(C)]
pub(super) struct InlineVec<T, const N: usize, A = ()> {
    len: u32,
    is_away: bool,
    here: [T; N],
    more: Option<Box<More<T, A>>>,
}

/// The storage beyond the inline elements.
#[derive(Debug)]
struct More<T, A> {
    list: Vec<T>,
    away: A,
}

impl<T: Copy + Default, const N: usize, A> Default for InlineVec<T, N, A> {
    fn default() -> Self {
        Self { len: 0, is_away: false, here: [T::default(); N], more: None }
    }
}

impl<T: Copy + Default, const N: usize, A: Default> InlineVec<T, N, A> {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    pub(super) fn push(&mut self, one: T) {
        let at = self.len as usize;
        if at < N {
            self.here[at] = one;
        } else {
            self.push_more(one);
        }
        self.len += 1;
    }

    #[cold]
    fn push_more(&mut self, one: T) {
        self.more().list.push(one);
    }

    /// The elements that are stored inline.
    #[inline(always)]
    pub(super) fn here(&self) -> &[T] {
        &self.here[..self.len().min(N)]
    }

    /// The elements after those.
    #[inline(always)]
    pub(super) fn there(&self) -> &[T] {
        if self.len() > N { self.more.as_ref().map_or(&[], |more| more.list.as_slice()) } else { &[] }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let here = self.len().min(N);
        let more = self.more.iter_mut().flat_map(|more| more.list.iter_mut());
        self.here[..here].iter_mut().chain(more)
    }

    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        if at < N { self.here().get(at) } else { self.there().get(at - N) }
    }

    /// Removes an element and moves the last one to its index.
    #[inline(always)]
    pub(super) fn swap_remove(&mut self, at: usize) -> Option<T> {
        if self.len() > N {
            return self.swap_remove_more(at);
        }
        let one = *self.here().get(at)?;
        self.len -= 1;
        self.here[at] = *self.here.get(self.len as usize)?;
        Some(one)
    }

    #[cold]
    fn swap_remove_more(&mut self, at: usize) -> Option<T> {
        let more = &mut self.more.as_mut()?.list;
        let one = if at < N { self.here[at] } else { *more.get(at - N)? };
        let last = more.pop()?;
        self.len -= 1;
        if at < N {
            self.here[at] = last;
        } else if let Some(place) = more.get_mut(at - N) {
            *place = last;
        }
        Some(one)
    }

    /// Whether the owner has moved all elements into its `A`.
    #[inline(always)]
    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Moves all elements into the owner's `A`.
    pub(super) fn send_away(&mut self, mut each: impl FnMut(&mut A, T)) -> &mut A {
        let (here, count) = (self.here, self.len().min(N));
        (self.len, self.is_away) = (0, true);
        let more = self.more();
        here[..count].iter().for_each(|&one| each(&mut more.away, one));
        more.list.drain(..).for_each(|one| each(&mut more.away, one));
        &mut more.away
    }

    /// Marks the elements as no longer in the `A`.
    pub(super) fn come_back(&mut self) {
        self.is_away = false;
    }

    pub(super) fn away(&self) -> Option<&A> {
        self.more.as_ref().filter(|_| self.is_away).map(|more| &more.away)
    }

    pub(super) fn away_mut(&mut self) -> Option<&mut A> {
        self.more.as_mut().map(|more| &mut more.away)
    }

    fn more(&mut self) -> &mut More<T, A> {
        self.more.get_or_insert_with(|| Box::new(More { list: Vec::new(), away: A::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_list(steps in proptest::collection::vec((0u8..3, 0usize..12), 0..60)) {
            let (mut few, mut list) = (InlineVec::<usize, 3, Vec<usize>>::default(), Vec::new());
            for (number, (step, at)) in steps.into_iter().enumerate() {
                match step {
                    0 if at < list.len() => prop_assert_eq!(few.swap_remove(at), Some(list.swap_remove(at))),
                    _ => {
                        few.push(number);
                        list.push(number);
                    }
                }
                prop_assert_eq!(few.iter_mut().map(|one| *one).collect::<Vec<_>>(), list.clone());
                prop_assert_eq!(few.get(at), list.get(at));
                prop_assert_eq!(few.len(), list.len());
            }
            prop_assert_eq!(few.send_away(|away, one| away.push(one)), &list);
            prop_assert!(few.is_away() && few.len() == 0);
        }
    }
}
